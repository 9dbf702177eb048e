"""SASRec: attention that cannot look ahead, sequences as they are cut, and training that is each client's own."""

from __future__ import annotations

from dataclasses import replace
from typing import Literal

import numpy as np
import pytest
import torch
from numpy.typing import NDArray

from fedrec.backbones.neumf import NeuMf
from fedrec.backbones.sasrec import SasRec
from fedrec.core.block import Block, World
from fedrec.core.messages import Array, Float32
from fedrec.core.method import Keys
from fedrec.core.reference import Central
from fedrec.core.settings import TrainingSettings
from fedrec.data.ragged import Ragged, offsets
from fedrec.keyed import keys_of
from fedrec.learn.torch.sequential import represented, sequences, train_sequences
from fedrec.methods.fedavg import FedAvg
from fedrec.methods.fedca.fedca import FedCa
from fedrec.methods.fedca.settings import FedCaSettings
from fedrec.methods.references.neumf import CentralNeuMf, CentralNeuMfSettings
from fedrec.methods.references.sasrec import CentralSasRec, CentralSasRecSettings

ITEMS, DIM = 20, 4
Float64 = NDArray[np.float64]


def block_of(lists: list[list[int]], users_of_client: tuple[int, ...]) -> Block:
    start = offsets(np.array([len(own) for own in lists]))
    train = Ragged(start, np.array([item for own in lists for item in own], np.int32))
    exclude = Ragged(start, np.array([item for own in lists for item in sorted(own)], np.int32))
    return Block(
        n_items=ITEMS,
        clients=np.arange(len(users_of_client)),
        client_keys=keys_of(range(len(users_of_client))),
        user_start=offsets(np.array(users_of_client)),
        user_keys=keys_of(range(len(lists))),
        train=train,
        exclude=exclude,
    )


LISTS = [[3, 1, 4, 15], [9, 2], [6], [5, 3, 8, 9, 7, 2, 0], [1, 2, 3], []]


@pytest.fixture
def block() -> Block:
    return block_of(LISTS, (1, 1, 1, 2, 1))


def parts(clients: int, blocks: int = 2, length: int = 3) -> tuple[SasRec, Float32, dict[str, Array]]:
    backbone = SasRec(length, blocks)
    table = np.random.default_rng(0).normal(size=(ITEMS, DIM)).astype(np.float32)
    return backbone, table, backbone.start(keys_of(range(clients)), DIM)


def test_sequences_are_the_latest_items_in_time_order(block: Block) -> None:
    cut = sequences(block, 3, block.user_keys)
    np.testing.assert_array_equal(cut.latest[0], [1, 4, 15])
    np.testing.assert_array_equal(cut.inputs[0], [3, 1, 4])
    np.testing.assert_array_equal(cut.targets[0], [1, 4, 15])
    np.testing.assert_array_equal(cut.inputs[1], [-1, -1, 9])
    np.testing.assert_array_equal(cut.targets[1], [-1, -1, 2])
    np.testing.assert_array_equal(cut.latest[2], [-1, -1, 6])
    assert (cut.targets[2] == -1).all()
    assert (cut.latest[5] == -1).all()
    for user, own in enumerate(LISTS):
        drawn = cut.negatives[user][cut.negatives[user] >= 0]
        assert not set(drawn) & set(own)
        assert ((cut.negatives[user] >= 0) == (cut.targets[user] >= 0)).all()


def test_as_many_negatives_are_drawn_as_asked_for_and_they_change_training(block: Block) -> None:
    one, four = sequences(block, 3, block.user_keys), sequences(block, 3, block.user_keys, 4)
    assert four.negatives.shape == (6, 12)
    np.testing.assert_array_equal(four.negatives >= 0, np.repeat(one.negatives >= 0, 4, axis=1))
    for user, own in enumerate(LISTS):
        assert not set(four.negatives[user]) & set(own)
    backbone, table, networks = parts(5)
    settings = TrainingSettings(dim=DIM, epochs=1)
    found = [
        train_sequences(block, table, settings, block.user_keys, block.client_keys, backbone, networks, negatives=count)
        for count in (1, 4)
    ]
    # the loss counts every negative: fresh scores are near 0, so each adds about log 2
    assert found[1].loss[0] - found[0].loss[0] == pytest.approx(3 * np.log(2), rel=0.6)
    assert len(found[1].rows.ids) > len(found[0].rows.ids)


def test_methods_hand_their_negatives_on_to_sequences(block: Block) -> None:
    """The setting was ignored in silence."""
    world, rows = World("w", ITEMS, block.n_users, block.n_clients), []
    for count in (1, 3):
        method = FedAvg(FedAvg.Settings(dim=DIM, backbone="sasrec", negatives=count, epochs=1))
        server, private = method.start_server(world, Keys(0, 0)), method.start_clients(world, block, Keys(0, 0))
        update = method.local_update(private, method.download(server, block.clients), block, Keys(0, 1))
        rows.append(len(update.upload.rows.ids))
    assert rows[1] > rows[0]


def test_where_there_are_no_times_each_user_has_a_random_order_of_its_own(block: Block) -> None:
    """It depends on the user's items alone: not on the file's order, on other users or on the client."""
    many = [list(range(user, user + 10)) for user in range(8)]
    cut = sequences(replace(block_of(many, (8,)), ordered=False), 10, keys_of(range(8)))
    again = sequences(replace(block_of([own[::-1] for own in many[3:5]], (1, 1)), ordered=False), 10, keys_of(range(2)))
    np.testing.assert_array_equal(cut.latest[3:5], again.latest)
    for user, own in enumerate(many):
        assert sorted(cut.latest[user]) == own
        assert list(cut.latest[user]) != own
    places = np.array([list(cut.latest[user]).index(8) for user in range(8)])  # an item that most users have
    assert len(set(places)) > 3, "no order that is the same for everybody"


def test_a_state_depends_on_what_came_before_only() -> None:
    backbone, _, networks = parts(1)
    own = {name: torch.from_numpy(values) for name, values in networks.items()}
    items = torch.randn(1, 1, 3, DIM, generator=torch.Generator().manual_seed(0))
    real = torch.ones(1, 1, 3, dtype=torch.bool)
    before = backbone.represent(items, real, own)
    later = items.clone()
    later[..., 2, :] += 5
    after = backbone.represent(later, real, own)
    torch.testing.assert_close(before[..., :2, :], after[..., :2, :])
    assert not torch.allclose(before[..., 2, :], after[..., 2, :])


def test_padding_changes_nothing() -> None:
    backbone, _, networks = parts(1)
    own = {name: torch.from_numpy(values) for name, values in networks.items()}
    items = torch.randn(1, 1, 3, DIM, generator=torch.Generator().manual_seed(0))
    real = torch.tensor([[[False, True, True]]])
    other = items.clone()
    other[..., 0, :] = 9.0
    torch.testing.assert_close(
        backbone.represent(items, real, own)[..., 1:, :], backbone.represent(other, real, own)[..., 1:, :]
    )


def test_one_block_by_hand() -> None:
    """Two items and one block, written out in numpy."""
    backbone, table, networks = parts(1, blocks=1, length=2)
    net = {name: values[0].astype(float) for name, values in networks.items()}
    net["scale_a_0"] += 0.3
    found = represented(
        block_of([[7, 2]], (1,)), table, backbone, {name: values.astype(np.float32) for name, values in net.items()}
    )

    def norm(x: Float64, scale: Float64, shift: Float64) -> Float64:
        centred = x - x.mean(-1, keepdims=True)
        scaled: Float64 = centred / np.sqrt(x.var(-1, keepdims=True) + 1e-5) * scale
        return scaled + shift

    x = table[[7, 2]].astype(float) * 2 + net["position"]
    q = norm(x, net["scale_a_0"], net["shift_a_0"])
    logits = q[1] @ net["query_0"] @ (x @ net["key_0"]).T / 2
    weights = np.exp(logits) / np.exp(logits).sum()
    x = q[1] + weights @ (x @ net["value_0"])
    inner = norm(x, net["scale_b_0"], net["shift_b_0"])
    x = inner + np.maximum(inner @ net["in_0"] + net["in_bias_0"], 0) @ net["out_0"] + net["out_bias_0"]
    np.testing.assert_allclose(found[0], norm(x, net["scale"], net["shift"]), atol=1e-5)


@pytest.mark.parametrize("optimizer", ["adam", "sgd"])
@pytest.mark.parametrize("batch", [1, 64])
def test_a_block_gives_what_its_clients_give(block: Block, optimizer: Literal["adam", "sgd"], batch: int) -> None:
    backbone, table, networks = parts(block.n_clients)
    settings = TrainingSettings(epochs=3, lr=0.05, optimizer=optimizer, batch_size=batch, weight_decay=0.01)
    draws, keys = block.user_keys + np.uint64(1), block.client_keys
    tables = table[None] + np.float32(0.1) * np.arange(block.n_clients, dtype=np.float32)[:, None, None]
    together = train_sequences(block, tables, settings, draws, keys, backbone, networks, proximal=0.1)
    users = 0
    for client in range(block.n_clients):
        one = block.take(np.array([client]))
        own = slice(users, users + one.n_users)
        users += one.n_users
        alone = train_sequences(
            one, tables[[client]], settings, draws[own], keys[[client]], backbone,
            {name: values[[client]] for name, values in networks.items()}, proximal=0.1,
        )  # fmt: skip
        mine = together.rows.take(np.array([client]))
        np.testing.assert_array_equal(mine.ids, alone.rows.ids)
        np.testing.assert_allclose(mine.values, alone.rows.values, atol=2e-5)
        np.testing.assert_allclose(together.users[own], alone.users, atol=1e-4)
        np.testing.assert_allclose(together.loss[client], alone.loss[0], rtol=1e-4)
        for name in networks:
            np.testing.assert_allclose(together.networks[name][client], alone.networks[name][0], atol=2e-5)


def test_the_users_that_come_back_are_those_of_the_trained_model(block: Block) -> None:
    backbone, table, networks = parts(block.n_clients)
    trained = train_sequences(
        block, table, TrainingSettings(epochs=2), block.user_keys, block.client_keys, backbone, networks
    )
    tables = table[None] + trained.rows.dense()
    moved = {name: values + trained.networks[name] for name, values in networks.items()}
    np.testing.assert_allclose(trained.users, represented(block, tables, backbone, moved), atol=1e-5)


def test_a_run_repeats_itself_to_the_last_bit_on_several_threads() -> None:
    """The gradient of ``rows[i]`` adds in whatever order threads come, once there is enough to share among them."""
    drawn = np.random.default_rng(0)
    block = block_of([list(drawn.permutation(ITEMS)[:18]) for _ in range(600)], (600,))
    backbone, table, networks = parts(1, length=16)
    settings = TrainingSettings(dim=DIM, epochs=4, batch_size=600, lr=0.05)
    threads = torch.get_num_threads()
    torch.set_num_threads(4)
    try:
        found = [
            train_sequences(block, table, settings, block.user_keys, block.client_keys, backbone, networks, negatives=4)
            for _ in range(4)
        ]
    finally:
        torch.set_num_threads(threads)
    for other in found[1:]:
        np.testing.assert_array_equal(found[0].rows.values, other.rows.values)


def test_shared_and_stacked_networks_train_alike(block: Block) -> None:
    backbone, table, networks = parts(1)
    settings = TrainingSettings(epochs=2)
    once = {name: values[0] for name, values in networks.items()}
    many = {name: np.repeat(values, block.n_clients, axis=0) for name, values in networks.items()}
    one = train_sequences(block, table, settings, block.user_keys, block.client_keys, backbone, once)
    other = train_sequences(block, table, settings, block.user_keys, block.client_keys, backbone, many)
    np.testing.assert_allclose(one.rows.values, other.rows.values, atol=1e-6)
    for name in networks:
        np.testing.assert_allclose(one.networks[name], other.networks[name], atol=1e-6)


def circle(users: int = 60) -> Central:
    """Everybody walks round the same circle of items: what comes next is certain to who looks at the order."""
    draw = np.random.default_rng(0)
    lists = [[(int(first) + step) % ITEMS for step in range(8)] for first in draw.integers(0, ITEMS, users)]
    block = block_of(lists, (users,))
    return Central(World("circle", ITEMS, users, users), block.train, block.exclude)


def test_the_centralised_reference_learns_the_order() -> None:
    data = circle()
    model = CentralSasRec(CentralSasRecSettings(dim=16, length=6, blocks=1, lr=0.02, epochs=10))
    state = model.start(data, Keys(0, 0))
    for number in range(1, 7):
        state, loss = model.step(state, data, Keys(0, number))
    scores = model.score(state, data, np.arange(60))
    for user in range(60):
        scores[user, data.train[user]] = -np.inf
    following = (data.train.values.reshape(60, 8)[:, -1] + 1) % ITEMS
    assert (scores.argmax(1) == following).mean() > 0.9
    assert loss < 0.5


def test_neumf_scores_as_it_trains() -> None:
    backbone = NeuMf((8, 4))
    networks = {name: values[0] for name, values in backbone.start(keys_of([3]), 6).items()}
    networks["h"] = np.array([0.5, -1.0, 2.0], np.float32)
    draw = np.random.default_rng(0)
    users, table = draw.normal(size=(2, 6)).astype(np.float32), draw.normal(size=(5, 6)).astype(np.float32)
    own = {name: torch.from_numpy(values)[None] for name, values in networks.items()}
    people = torch.from_numpy(np.repeat(users, 5, axis=0))[None]
    logits = backbone.score(people, torch.from_numpy(np.tile(table, (2, 1)))[None], own)
    np.testing.assert_allclose(backbone.scores(users, table, networks).ravel(), logits[0], atol=1e-5)
    bare = backbone.scores(users, table, {**networks, "h": np.zeros(3, np.float32)})
    np.testing.assert_allclose(
        backbone.scores(users, table, networks) - bare, (users[:, :3] * networks["h"]) @ table[:, :3].T, atol=1e-5
    )


def test_neumf_learns_two_tastes() -> None:
    lists = [list(np.random.default_rng(u).choice(10, 6, replace=False) + 10 * (u % 2)) for u in range(40)]
    block = block_of([[int(i) for i in own] for own in lists], (40,))
    data = Central(World("tastes", ITEMS, 40, 40), block.train, replace(block).exclude)
    model = CentralNeuMf(CentralNeuMfSettings(dim=8, lr=0.02, epochs=5, batch_size=64))
    state = model.start(data, Keys(0, 0))
    for number in range(1, 5):
        state, _ = model.step(state, data, Keys(0, number))
    scores = model.score(state, data, np.arange(40))
    own = np.array([scores[u, 10 * (u % 2) : 10 * (u % 2) + 10].mean() for u in range(40)])
    other = np.array([scores[u, 10 - 10 * (u % 2) : 20 - 10 * (u % 2)].mean() for u in range(40)])
    assert (own > other).mean() > 0.95


def test_fedca_reads_users_with_the_blended_table(block: Block) -> None:
    """After aggregation the item table has moved: a user's state must be read anew, not kept from training."""
    method = FedCa(FedCaSettings(backbone="sasrec", dim=DIM, epochs=1, rho=0.5))
    world, start = World("sequences", ITEMS, block.n_users, block.n_clients), Keys(0, 0)
    server, private = method.start_server(world, start), method.start_clients(world, block, start)
    update = method.local_update(private, method.download(server, block.clients), block, Keys(0, 1))
    moved = replace(method.download(server, block.clients), tables=update.upload.tables + np.float32(0.3))
    scores = method.score(update.private, moved, block)
    assert update.private.tables is not None
    tables = 0.5 * update.private.tables + 0.5 * moved.tables
    networks = {n: 0.5 * update.private.networks[n] + 0.5 * other for n, other in moved.networks.items()}
    users = represented(block, tables.astype(np.float32), method.backbone, networks)
    expected = method.backbone.scores(users, tables, networks, block.client_of_user)
    np.testing.assert_allclose(scores, expected, atol=1e-5)
    stale = method.backbone.scores(update.private.users, tables, networks, block.client_of_user)
    assert np.abs(scores - stale).max() > 1e-3
