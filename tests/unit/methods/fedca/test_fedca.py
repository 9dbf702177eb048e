"""FedCA: its round by hand, its options, its bytes."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from fedrec.core import wire
from fedrec.core.block import Block, World
from fedrec.core.method import D, Keys, Method, P, Reply, S, U, Update
from fedrec.core.newcomers import folded, new_download
from fedrec.core.settings import build
from fedrec.data.ragged import Ragged, offsets
from fedrec.errors import BadInput
from fedrec.keyed import keys_of
from fedrec.methods._shared.personal import lowest, tickets
from fedrec.methods.fedca.approx import FedCaApprox
from fedrec.methods.fedca.data_part import laplace_rows
from fedrec.methods.fedca.fedca import FedCa
from fedrec.methods.fedca.messages import FedCaDownload, FedCaUpload
from fedrec.methods.fedca.settings import FedCaApproxSettings, FedCaSettings
from fedrec.methods.registry import find
from there import there

KEYS = Keys(5, 1)


def block_of(counts: list[int], n_items: int = 40, users_each: int = 1) -> Block:
    draw = np.random.default_rng(0)
    items = [draw.permutation(n_items)[:c].astype(np.int32) for c in counts]
    train = Ragged(offsets(np.array(counts)), np.concatenate(items))
    exclude = Ragged(train.start, np.concatenate([np.sort(i) for i in items]))
    clients = len(counts) // users_each
    return Block(
        n_items=n_items,
        clients=np.arange(clients),
        client_keys=keys_of(f"c{c}" for c in range(clients)),
        user_start=np.arange(clients + 1) * users_each,
        user_keys=keys_of(f"u{u}" for u in range(len(counts))),
        train=train,
        exclude=exclude,
    )


def fedca(**given: Any) -> FedCa:
    return FedCa(build(FedCaSettings, {"dim": 4, "epochs": 1, "r": 1.0, **given}, "fedca"))


def approximate(**given: Any) -> FedCaApprox:
    return FedCaApprox(build(FedCaApproxSettings, {"dim": 4, "epochs": 1, "r": 1.0, **given}, "fedca-approx"))


def world_of(block: Block) -> World:
    return World("test", block.n_items, block.n_users, block.n_clients)


def one_round(method: Method[S, P, U, D], block: Block) -> tuple[S, Update[P, U], S]:
    server = method.start_server(world_of(block), Keys(5, 0))
    private = method.start_clients(world_of(block), block, Keys(5, 0))
    update = method.local_update(private, method.download(server, block.clients), block, KEYS)
    return server, update, method.aggregate(server, iter([Reply(block.clients, update.upload)]), KEYS)


def test_section_5_1_3_blend_by_hand() -> None:
    method, block = fedca(rho=0.75), block_of([3])
    server = method.start_server(world_of(block), Keys(5, 0))
    private = method.start_clients(world_of(block), block, Keys(5, 0))
    there(private.tables)[...] = 4.0
    download = FedCaDownload(np.full_like(server.tables, 8.0), {}, None, {})
    tables, _ = method.start_tables(private, download)
    np.testing.assert_allclose(tables, 5.0)  # 0.75 * 4 + 0.25 * 8


def test_inference_scores_with_the_blend() -> None:
    method, block = fedca(rho=0.75), block_of([3, 4])
    private = method.start_clients(world_of(block), block, Keys(5, 0))
    draw = np.random.default_rng(1)
    tables = there(private.tables)
    download = FedCaDownload(draw.normal(size=tables.shape).astype(np.float32), {}, None, {})
    blend = 0.75 * tables + 0.25 * download.tables
    expected = np.einsum("cid,cd->ci", blend, private.users)
    np.testing.assert_allclose(method.score(private, download, block), expected, atol=1e-5)
    some = np.array([[1, 5], [0, 2]], np.int32)
    found = method.score(private, download, block, some)
    np.testing.assert_allclose(found, np.take_along_axis(expected, some, 1), atol=1e-5)


@pytest.mark.parametrize("rho", [0.0, 0.8])
def test_the_next_download_is_the_weighted_mixture(rho: float) -> None:
    method, block = fedca(rho=rho, alpha=0.3, beta=0.3), block_of([5, 9, 7, 3])
    _, update, after = one_round(method, block)
    np.testing.assert_allclose(after.weights.sum(1), 1, atol=1e-6)
    expected = np.einsum("uv,vid->uid", after.weights, update.upload.tables)
    np.testing.assert_allclose(after.tables, expected, atol=1e-6)
    # the weights again, pair by pair: Eq. (6), (7), (8)
    tables, sizes = update.upload.tables.astype(np.float64), np.array([5, 9, 7, 3])
    start = offsets(sizes)
    for u in range(4):
        point = np.zeros(4)
        for v in range(4):
            similar = 1 / (1 + ((tables[u] - tables[v]) ** 2).sum())
            both = min(sizes[u], sizes[v])
            x, y = (there(update.upload.subspaces)[start[c] : start[c] + both].astype(np.float64) for c in (u, v))
            angle = np.arccos(np.clip((x * y).sum(0), -1, 1)).mean()
            point[v] = sizes[v] / sizes.sum() + 0.3 * similar + 0.3 * np.cos(angle) / 2
        tau = np.array([(np.sort(point)[::-1][:j].sum() - 1) / j for j in range(1, 5)]).max()
        np.testing.assert_allclose(after.weights[u], np.maximum(point - tau, 0), atol=1e-4)


def test_without_alpha_and_beta_it_is_fedavg() -> None:
    method, block = fedca(alpha=0, beta=0), block_of([5, 9, 7, 3])
    _, update, after = one_round(method, block)
    mean = np.average(update.upload.tables, axis=0, weights=[5, 9, 7, 3])
    np.testing.assert_allclose(after.tables, np.broadcast_to(mean, after.tables.shape), atol=1e-6)
    assert update.upload.subspaces is None  # nothing is told that nobody needs


def test_the_share_r_is_aggregated_and_the_others_keep_their_own_table() -> None:
    method, block = fedca(r=0.5, alpha=0, beta=0), block_of([4] * 6)
    _, update, after = one_round(method, block)
    alone = np.flatnonzero(after.weights.diagonal() == 1)
    assert len(alone) == 3
    np.testing.assert_array_equal(after.tables[alone], update.upload.tables[alone])
    mixed = np.setdiff1d(np.arange(6), alone)
    mean = update.upload.tables[mixed].mean(0)
    np.testing.assert_allclose(after.tables[mixed], np.broadcast_to(mean, after.tables[mixed].shape), atol=1e-6)


def test_another_round_draws_another_share() -> None:
    block = block_of([4] * 30)
    first, second = (set(lowest(tickets(block, Keys(5, t)), 0.5)) for t in (1, 2))
    assert len(first) == len(second) == 15
    assert first != second


def test_who_is_absent_receives_the_same_again() -> None:
    method, block = fedca(), block_of([4, 5, 6])
    server, update, _ = one_round(method, block)
    upload = update.upload
    two = FedCaUpload(upload.tables[:2], {}, there(upload.sizes)[:2], None, there(upload.subspaces)[:9], None, None)
    after = method.aggregate(server, iter([Reply(np.array([0, 1]), two)]), KEYS)
    np.testing.assert_array_equal(after.tables[2], server.tables[2])
    assert not after.weights[:2, 2].any()


def test_nobody_answers_and_nothing_changes() -> None:
    method, block = fedca(), block_of([4, 5])
    server = method.start_server(world_of(block), Keys(5, 0))
    assert method.aggregate(server, iter([]), KEYS) is server


@pytest.mark.parametrize(
    "given",
    [
        {"complementarity": "sin"},
        {"complementarity": "raw"},
        {"normalise": "eq5"},
        {"variant_similarity": "code"},
        {"variant_complementarity": "code"},
        {"weights": "code"},
        {"proximal": 0.5},
        {"noise_svd": 0.1},
        {"alpha": 0.0},
        {"beta": 0.0},
    ],
    ids=str,
)
def test_every_option_changes_the_mixture(given: dict[str, Any]) -> None:
    block = block_of([8, 12, 10, 20])
    plain = one_round(fedca(alpha=0.3, beta=0.2, epochs=3), block)[2]
    other = one_round(fedca(**{"alpha": 0.3, "beta": 0.2, "epochs": 3, **given}), block)[2]
    assert np.isfinite(other.tables).all()
    assert not np.allclose(plain.tables, other.tables, atol=1e-6)


def test_the_backbone_with_layers_mixes_its_networks() -> None:
    method, block = fedca(backbone="ncf", alpha=0.3, beta=0.2), block_of([8, 12, 10])
    _, update, after = one_round(method, block)
    for name, values in update.upload.networks.items():
        expected = np.tensordot(after.weights, values, axes=(1, 0))
        np.testing.assert_allclose(after.networks[name], expected, atol=1e-5)
    scores = method.score(update.private, method.download(after, block.clients), block)
    assert scores.shape == (3, 40)


def test_organisations_tell_of_all_their_users() -> None:
    method, block = fedca(), block_of([4, 5, 6, 7], users_each=2)
    _, update, after = one_round(method, block)
    np.testing.assert_array_equal(update.upload.sizes, [9, 13])
    assert there(update.upload.subspaces).shape == (22, 4)
    assert after.tables.shape[0] == 2


def test_table_7_upload_and_download_bytes() -> None:
    """m f + |I_u| k numbers up, m f down: 213.56 and 210.25 KB on ML-100K (m 1682, f 16, |I_u| 106, k 4)."""
    method = FedCa(build(FedCaSettings, {"epochs": 1, "precision": "float64", "r": 1.0}, "fedca"))
    block = block_of([100, 112], n_items=1682)
    server, update, _ = one_round(method, block)
    form = wire.Form.of(method.settings)
    counted = replace(update.upload, sizes=None, tickets=None)  # the table leaves |D_u| out
    assert wire.payload(counted, form) / 2 == (1682 * 16 + 106 * 4) * 8
    assert round(wire.payload(counted, form) / 2 / 1024, 4) == 213.5625
    assert wire.payload(update.upload, form) / 2 / 1024 == pytest.approx(213.56, abs=0.01)
    download = method.download(server, block.clients)
    assert wire.payload(download, form) / 2 / 1024 == 210.25


def test_svd_noise_is_laplace_and_keyed() -> None:
    streams = keys_of(["a", "b", "c"])
    start = np.array([0, 40_000, 40_010, 60_000])
    drawn = laplace_rows(streams, start, 4)
    assert drawn.shape == (60_000, 4)
    assert np.abs(drawn).mean() == pytest.approx(1, abs=0.02)
    np.testing.assert_array_equal(laplace_rows(streams[1:2], np.array([0, 10]), 4), drawn[40_000:40_010])
    assert len(np.unique(drawn)) > 0.999 * drawn.size


def test_common_noise_leaves_the_svd_part_alone() -> None:
    from fedrec.privacy.chain import outgoing

    method, block = fedca(noise=0.3), block_of([8, 12])
    _, update, _ = one_round(method, block)
    sent = outgoing(method.settings).apply(update.upload, block, KEYS)
    np.testing.assert_array_equal(sent.subspaces, update.upload.subspaces)
    assert np.abs(sent.tables - update.upload.tables).mean() == pytest.approx(0.3, rel=0.2)


def test_the_approximate_mode_with_room_for_all_equals_the_exact_one() -> None:
    block = block_of([5, 9, 7, 3, 20, 6])
    given = {"alpha": 0.3, "beta": 0.3, "rho": 0.6}
    methods: list[Method[Any, Any, Any, Any]] = [fedca(**given), approximate(**given, neighbours=6, rows=40)]
    states = []
    for method in methods:
        server = method.start_server(world_of(block), Keys(5, 0))
        private = method.start_clients(world_of(block), block, Keys(5, 0))
        for number in (1, 2, 3):
            download = method.download(server, block.clients)
            update = method.local_update(private, download, block, Keys(5, number))
            server = method.aggregate(server, iter([Reply(block.clients, update.upload)]), Keys(5, number))
            private = update.private
        states.append(method.score(private, method.download(server, block.clients), block))
        stranger = block_of([8, 4])
        given_to_it = new_download(method, server, world_of(block))
        states.append(folded(method, given_to_it, world_of(block), stranger, 5))
    np.testing.assert_allclose(states[0], states[2], atol=1e-4)
    np.testing.assert_allclose(states[1], states[3], atol=1e-3)  # somebody new: more steps of Adam, from equal tables


def test_somebody_new_starts_from_the_mean_of_the_approximate_tables() -> None:
    """By hand: two clients of three items, of which they changed item 1 both and item 2 one."""
    method, world = approximate(neighbours=2, rows=2), world_of(block_of([1, 1]))
    start = method.start_server(world, Keys(5, 0))
    ids = np.array([[1, 2], [1, world.n_items]], np.int32)
    values = np.zeros((2, 2, 4), np.float32)
    values[0, 0], values[0, 1], values[1, 0] = 2, 4, 6
    received = new_download(method, replace(start, ids=ids, values=values), world)
    np.testing.assert_array_equal(received.ids[0], np.arange(world.n_items))
    assert received.values[0, :4].tolist() == [[0.0] * 4, [4.0] * 4, [2.0] * 4, [0.0] * 4]
    assert not received.values[0, 3:].any()


def test_the_approximate_mode_sends_no_more_than_its_rows() -> None:
    method, block = approximate(neighbours=2, rows=6), block_of([5, 9, 7, 3])
    _, update, after = one_round(method, block)
    assert update.upload.values.shape == after.values.shape == (4, 6, 4)
    assert (np.diff(after.ids, axis=1) > 0).all() or (after.ids == block.n_items).any()


@pytest.mark.parametrize("given", [{"noise": 0.1}, {"backbone": "ncf"}, {"variant_similarity": "code"}], ids=str)
def test_the_approximate_mode_refuses_what_it_cannot_do(given: dict[str, Any]) -> None:
    with pytest.raises(BadInput, match="fedca-approx"):
        approximate(neighbours=3, **given)


def test_neighbours_of_fedca_are_those_of_the_method_that_grew_out_of_it() -> None:
    assert find("fedca", {"neighbours": 3}) is find("fedca-approx") is FedCaApprox
    assert find("fedca", {"neighbours": 0}) is find("fedca") is FedCa
    with pytest.raises(BadInput, match="use fedca-approx with neighbours=3"):
        fedca(neighbours=3)
