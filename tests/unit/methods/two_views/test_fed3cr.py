"""Fed3CR: every equation of its file by hand, its scores, and what it plugs into."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
import torch
from numpy.typing import NDArray
from two_views_made import FULL, D, M, made_block, parameters, trained

from fedrec.core.block import World
from fedrec.core.method import Keys
from fedrec.learn.samples import draw
from fedrec.methods.two_views.fed3cr import Fed3cr, Fed3crSettings, complementarity, consistency
from fedrec.methods.two_views.generator import generate, generator_sizes, start_generator
from fedrec.methods.two_views.held import LocalViews
from fedrec.methods.two_views.reading import Reader
from fedrec.methods.two_views.step import Batch, Positives


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


@pytest.mark.parametrize("base", ["fedmf", "fedncf", "pfedrec", "fedrap"])
def test_the_mechanism_plugs_into_other_methods(base: str) -> None:
    block = made_block()
    method = Fed3cr(Fed3crSettings(dim=D, epochs=1, layers=2, lr_items=0.01, base=base))
    world, keys = World("w", M, block.n_users, block.n_clients), Keys(1, 0)
    server, private = method.start_server(world, keys), method.start_clients(world, block, keys)
    update = method.local_update(private, method.download(server, block.clients), block, Keys(1, 1))
    assert isinstance(update.local, LocalViews)
    assert np.isfinite(method.score(update.private, update.local, block)).all()
    assert (np.abs(update.private.bias).max() > 0) == (base in ("pfedrec", "fedrap"))
    assert ("weight_0" in update.upload.networks) == (base == "fedncf")
