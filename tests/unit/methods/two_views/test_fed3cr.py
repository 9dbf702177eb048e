"""Fed3CR: every equation of its file by hand, its scores, and what it plugs into."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
import torch
from numpy.typing import NDArray
from two_views_made import FULL, D, M, made_block, parameters, trained

from fedrec.core.block import World
from fedrec.core.method import Keys, Reply, Update
from fedrec.learn.samples import draw
from fedrec.methods._shared.embedding import ItemServer
from fedrec.methods._shared.server_steps import GradientServer
from fedrec.methods.two_views.fed3cr import Fed3cr, Fed3crSettings, complementarity, consistency, loss
from fedrec.methods.two_views.generator import generate, generator_sizes, start_generator
from fedrec.methods.two_views.reading import Reader
from fedrec.methods.two_views.settings import LocalViews
from fedrec.methods.two_views.step import Batch, Positives
from fedrec.methods.two_views.train import train_two_views


def two_tables() -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """A shared and a private table of one client."""
    rng = np.random.default_rng(8)
    return rng.normal(size=(M, D)), rng.normal(size=(M, D))


def test_eq_9_and_10_the_transfer_matrix_by_hand() -> None:
    networks = start_generator(5, D, 2)
    proto = np.concatenate([np.arange(D), -np.arange(D)]).astype(np.float32)
    hidden = np.maximum(proto @ networks["transfer_weight_0"] + networks["transfer_bias_0"], 0)
    wanted = (hidden @ networks["transfer_weight_1"] + networks["transfer_bias_1"]).reshape(D, D)
    layers = {name: torch.from_numpy(array)[None] for name, array in networks.items()}
    found, read = generate(torch.from_numpy(proto)[None, None], layers)
    np.testing.assert_allclose(found[0].numpy(), wanted, rtol=1e-5, atol=1e-6)
    assert len(read) == 2


def test_the_generator_has_the_papers_widths() -> None:
    assert generator_sizes(32, 2) == [(64, 128), (128, 1024)]
    assert generator_sizes(32, 4) == [(64, 128), (128, 256), (256, 512), (512, 1024)]


def test_eq_15_and_16_by_hand() -> None:
    shared, private = two_tables()
    ids = np.array([1, 4, 7])

    def distribution(table: NDArray[np.float64]) -> NDArray[np.float64]:
        proto = table[ids].mean(0)
        cosine = table @ proto / (np.linalg.norm(table, axis=1) * np.linalg.norm(proto))
        scaled = np.exp(10 * cosine)
        return np.asarray(scaled / scaled.sum())

    p, q = distribution(private), distribution(shared)
    wanted = -0.5 * (p * np.log(q)).sum() - 0.5 * (q * np.log(p)).sum()
    positives = Positives(torch.from_numpy(ids)[None], torch.full((1, 3), 1 / 3, dtype=torch.float64))
    empty = torch.zeros(1, 0, dtype=torch.int64)
    batch = Batch(1, 1, empty, empty.view(-1), empty, empty, empty, empty.bool())
    found = consistency(
        torch.from_numpy(shared)[None],
        torch.from_numpy(private)[None],
        batch,
        positives,
        replace(FULL, norm_floor=1e-9),
    )
    assert float(found[0]) == pytest.approx(wanted, rel=1e-9)


def test_eq_17_and_18_by_hand() -> None:
    shared, private = two_tables()
    wanted = ((shared.T @ private) ** 2).sum() / D
    found = complementarity(torch.from_numpy(shared)[None], torch.from_numpy(private)[None], FULL)
    assert float(found[0]) == pytest.approx(wanted, rel=1e-9)


def test_one_step_descends_the_numerical_gradient_of_the_whole_objective() -> None:
    """A step of rate r changes the shared table by minus r times the numerical gradient of Eq. 19."""
    block = made_block((1,))
    shared_start = parameters(block, "ace", False)["shared"]
    rate = 1e-3
    one = replace(FULL, epochs=1, batch_size=4096, lr_items=rate, lr_transfer=1e-9, lr=1e-9, norm_floor=1e-6)
    out, _ = trained(block, one)
    given = parameters(block, "ace", False)
    samples = draw(block, 4, np.arange(1, dtype=np.uint64))
    items = samples.rows_ids[samples.row]
    ids = block.train.values
    w = {name: array.astype(np.float64) for name, array in given["networks"].items()}
    private, user = given["private"][0].astype(np.float64), given["users"][0].astype(np.float64)

    def whole(shared: NDArray[np.float64]) -> float:
        proto = np.concatenate([shared[ids].mean(0), private[ids].mean(0)])
        state = proto
        for layer in range(3):
            state = state @ w[f"transfer_weight_{layer}"] + w[f"transfer_bias_{layer}"]
            state = np.maximum(state, 0) if layer < 2 else state
        enhanced = shared @ state.reshape(D, D).T  # Eq. 11
        logit = (enhanced + private)[items] @ user  # Eq. 12-13
        rec = (np.logaddexp(0, logit) - samples.label * logit).sum()  # Eq. 7

        def distribution(table: NDArray[np.float64]) -> NDArray[np.float64]:
            center = table[ids].mean(0)
            cosine = table @ center / (np.linalg.norm(table, axis=1) * np.linalg.norm(center))
            scaled = np.exp(10 * cosine)
            return np.asarray(scaled / scaled.sum())

        p, q = distribution(private), distribution(enhanced)
        l_a = -0.5 * (p * np.log(q) + q * np.log(p)).sum()
        l_o = ((enhanced.T @ private) ** 2).sum() / D
        return float(rec + 0.7 * l_a + 0.3 * l_o)

    at = shared_start.astype(np.float64)
    for row, column in ((0, 0), (3, 2), (int(ids[0]), 1), (22, 3)):
        up, down = at.copy(), at.copy()
        up[row, column] += 1e-5
        down[row, column] -= 1e-5
        slope = (whole(up) - whole(down)) / 2e-5
        assert out.shared[0, row, column] == pytest.approx(-rate * slope, rel=5e-3, abs=1e-6)


def test_scores_are_those_of_the_fused_table_and_views_can_be_compared() -> None:
    block = made_block()
    method = Fed3cr(Fed3crSettings(dim=D, epochs=1, layers=2, lr_items=0.01))
    world, keys = World("w", M, block.n_users, block.n_clients), Keys(1, 0)
    server, private = method.start_server(world, keys), method.start_clients(world, block, keys)
    update = method.local_update(private, method.download(server, block.clients), block, Keys(1, 1))
    for model in (method.model(method.download(server, block.clients)), update.local):
        assert isinstance(model, LocalViews)
        scores = method.score(update.private, model, block)
        read = Reader.of(method, update.private, model, block)
        for user, client in enumerate(block.client_of_user):
            wanted = read.fused(int(client)) @ update.private.users[user]
            np.testing.assert_allclose(scores[user], wanted, rtol=1e-4, atol=1e-5)
    overlap = read.overlap(depth=5)
    assert overlap.shape == (block.n_users,)
    assert ((overlap >= 0) & (overlap <= 1)).all()
    assert read.correlation(0).shape == (D, D)


def test_local_views_score_with_the_networks_as_trained() -> None:
    """What is evaluated after local work is the download's networks plus the client's own changes."""

    block, rng = made_block(), np.random.default_rng(4)
    method = Fed3cr(Fed3cr.Settings(dim=D, layers=2))
    given = parameters(block, "ace", False, 2)
    private = method.Private(given["users"], np.zeros(block.n_users, np.float32), given["private"])
    layers = given["networks"]
    moved = {n: rng.normal(size=(block.n_clients, *a.shape)).astype(np.float32) * 0.1 for n, a in layers.items()}
    local = LocalViews(given["shared"], None, layers, moved)
    together = Reader.of(method, private, local, block).matrices
    assert together is not None
    for client in range(block.n_clients):
        own = LocalViews(given["shared"], None, {n: a + moved[n][client] for n, a in layers.items()}, {})
        alone = Reader.of(method, private, own, block).matrices
        assert alone is not None
        np.testing.assert_allclose(together[client], alone[client], rtol=1e-5, atol=1e-6)


def round_of(base: str, **more: object) -> tuple[Fed3cr, Update[Any, Any], ItemServer, ItemServer]:
    """One round of the mechanism plugged into a method, and the server before and after."""
    block = made_block()
    method = Fed3cr(Fed3crSettings(**{"dim": D, "epochs": 2, "layers": 2, "lr_items": 0.01, "base": base, **more}))
    world, keys = World("w", M, block.n_users, block.n_clients), Keys(1, 0)
    server, private = method.start_server(world, keys), method.start_clients(world, block, keys)
    update = method.local_update(private, method.download(server, block.clients), block, Keys(1, 1))
    return method, update, server, method.aggregate(server, iter([Reply(block.clients, update.upload)]), Keys(1, 1))


@pytest.mark.parametrize("base", ["fedmf", "fedncf", "pfedrec", "fedrap"])
def test_the_mechanism_plugs_into_other_methods(base: str) -> None:
    method, update, before, after = round_of(base)
    assert isinstance(update.local, LocalViews)
    assert np.isfinite(method.score(update.private, update.local, made_block())).all()
    assert (np.abs(update.private.bias).max() > 0) == (base in ("pfedrec", "fedrap"))
    assert ("weight_0" in update.upload.networks) == (base == "fedncf")
    assert np.abs(after.items - before.items).max() > 0
    assert np.abs(update.upload.networks["transfer_weight_0"]).max() > 0
    _, other, _, plain = round_of("none")
    assert np.abs(after.items - plain.items).max() > 1e-4, "another algorithm, another table"
    assert np.abs(update.private.tables - other.private.tables).max() > 1e-6


def test_plugged_into_fedmf_clients_send_a_gradient_and_the_server_makes_fedmfs_step() -> None:
    """Private parameters learn with the consensus fixed; its rows are lr_items times the gradient at their end."""
    block = made_block()
    method, update, before, after = round_of("fedmf", server_lr=0.05)
    assert isinstance(before, GradientServer)
    assert isinstance(update.local, LocalViews)
    assert update.local.changes is None, "the gradient is no change of the client's own table"
    assert np.abs(update.upload.networks["transfer_weight_0"]).max() > 0
    moved = after.items - before.items
    assert np.abs(moved).max() == pytest.approx(0.05, rel=1e-3), "the first step of Adam has its rate's size"
    mean = update.upload.rows.dense().mean(0)
    large = np.abs(mean) > 1e-6
    np.testing.assert_array_equal(np.sign(moved[large]), np.sign(mean[large]))
    still = method.aggregate(before, iter([]), Keys(1, 1))
    assert still is before, "nobody answered"
    # what was uploaded: the gradient of Eq. 19 over all samples, with everything else as trained
    phase = replace(method.phases(1)[1], lr_items=0.01)
    own = {name: layer + update.upload.networks[name][0] for name, layer in before.networks.items()}
    samples = draw(block, 4, Keys(1, 1).clients(block, "negatives"))
    again = train_two_views(
        block, samples, update.private.users, before.items, update.private.tables.copy(), own,
        method.backbone, (phase,), loss, Keys(1, 1).clients(block, "batches"), engine="torch",
    )  # fmt: skip
    np.testing.assert_allclose(update.upload.rows.dense()[0], again.shared[0], rtol=1e-3, atol=1e-7)


def test_plugged_into_pfedrec_score_functions_learn_before_tables_do() -> None:
    """The step of the score function is that of a round whose tables stay; clients start from one function."""
    block = made_block()
    method, update, _, _ = round_of("pfedrec", epochs=1, batch_size=4096)
    start = method.start_clients(World("w", M, block.n_users, block.n_clients), block, Keys(1, 0))
    assert (start.users == start.users[0]).all()
    _, still, _, _ = round_of("pfedrec", epochs=1, batch_size=4096, lr_items=0.0)
    np.testing.assert_array_equal(update.private.users, still.private.users)
    np.testing.assert_array_equal(
        update.upload.networks["transfer_weight_0"], still.upload.networks["transfer_weight_0"]
    )
    assert not still.upload.rows.dense().any()
    assert np.abs(update.upload.rows.dense()).max() > 0


def test_clients_may_learn_with_adam() -> None:
    """The first step of Adam moves every parameter that has a gradient by its rate."""
    _, update, _, _ = round_of("none", epochs=1, batch_size=4096, optimizer="adam", lr_items=0.01)
    sizes = np.abs(update.upload.rows.dense())
    assert sizes.max() == pytest.approx(0.01, rel=1e-3)
    assert np.median(sizes) == pytest.approx(0.01, rel=1e-2)
    _, plain, _, _ = round_of("none", epochs=1, batch_size=4096)
    assert np.abs(plain.upload.rows.dense()).max() != pytest.approx(0.01, rel=1e-3)
