"""FedIAR: the plain formulas of its file by hand, and their fast twins against torch's own gradients of them."""

from __future__ import annotations

import copy
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
import torch
from numpy.typing import NDArray
from two_views_made import D, M, made_block

from fedrec import keyed
from fedrec.backbones.gated import GatedViews
from fedrec.core.block import World
from fedrec.core.messages import Rows
from fedrec.core.method import Keys, Reply
from fedrec.errors import BadInput
from fedrec.learn.samples import draw
from fedrec.maths.dirichlet_clusters import cluster_items
from fedrec.maths.matrix_entropy import dimension_loss
from fedrec.methods.two_views.fediar import FedIar, client_loss, dimension_view, sample_view
from fedrec.methods.two_views.fediar_state import FedIarSettings, IarServer, PairedTables


def torched(*arrays: NDArray[np.floating]) -> list[torch.Tensor]:
    return [torch.from_numpy(np.asarray(a, np.float64)).requires_grad_() for a in arrays]


def test_eq_18_to_21_by_hand_and_the_gated_backbone_is_their_twin() -> None:
    model = GatedViews(hidden=3, hyper_hidden=2)
    rng = np.random.default_rng(0)
    psi = {n: a[0] for n, a in model.start(np.array([7], np.uint64), 2 * D).items() if n != "bias"}
    u, theta, local, common = (rng.normal(size=D).astype(np.float32) for _ in range(4))
    inner = np.maximum(u @ psi["hyper_weight_0"] + psi["hyper_bias_0"], 0)
    phi = inner @ psi["hyper_weight_1"] + psi["hyper_bias_1"]  # Eq. 21
    first, rest = phi[: 2 * D * 3].reshape(2 * D, 3), phi[2 * D * 3 :]
    state = np.maximum(np.concatenate([local, common]) @ first + rest[:3], 0)
    share = 1 / (1 + np.exp(-(state @ rest[3:6] + rest[6])))  # Eq. 19
    score = theta @ (share * local + (1 - share) * common) + 0.5  # Eq. 18
    bias, label = np.array(0.5, np.float32), np.array([1.0], np.float32)
    layers = {n: torch.from_numpy(a) for n, a in psi.items()}
    one, two, three, four, five = (torch.from_numpy(a) for a in (u, theta, bias, local[None], common[None]))
    plain = client_loss(one, two, three, four, five, layers, torch.from_numpy(label))
    assert float(plain) == pytest.approx(np.log1p(np.exp(-score)), rel=1e-5)  # Eq. 20
    pair: Any = PairedTables(local[None, None], common[None])
    stacked = {n: a[None] for n, a in psi.items()} | {"bias": bias[None]}
    found = model.scores(np.concatenate([u, theta])[None], pair, stacked)
    assert found[0, 0] == pytest.approx(score, rel=1e-5)


@pytest.mark.parametrize("changed", [False, True])
@pytest.mark.parametrize("warm", [False, True])
@pytest.mark.parametrize("scorer", ["affine", "mlp"])
@pytest.mark.parametrize("gate", ["network", "equal", "sum", "global"])
def test_scores_of_whole_catalogues_are_those_of_the_trained_model(
    gate: Any, scorer: Any, warm: bool, changed: bool
) -> None:
    model, rng = GatedViews(3, 2, gate, scorer), np.random.default_rng(1)
    local, common = (rng.normal(size=size).astype(np.float32) for size in ((2, M, D), (M, D)))
    users = rng.normal(size=(3, 2 * D)).astype(np.float32)
    networks = {n: a for n, a in model.start(np.array([7, 8], np.uint64), 2 * D).items() if n != "bias"}
    networks["bias"] = rng.normal(size=3).astype(np.float32)
    owners, whole = np.array([0, 1, 1]), np.tile(common, (2, 1, 1))
    changes = None
    if changed:
        ids, values = np.array([4, 1, 2], np.int32), rng.normal(size=(3, D)).astype(np.float32)
        changes = Rows(np.array([0, 1, 3]), ids, values, M)
        for client, row, value in zip((0, 1, 1), ids, values, strict=True):
            whole[client, row] += value
    tables: Any = PairedTables(None if warm else local, common, changes)
    found = model.scores(users, tables, networks, owners)
    both = np.concatenate([whole if warm else local, whole], 2)[owners]
    layers = {n: torch.from_numpy(a if n == "bias" else a[owners]) for n, a in networks.items()}
    layers["bias"] = layers["bias"][:, None]
    expected = model.score(torch.from_numpy(users)[:, None], torch.from_numpy(both), layers)
    np.testing.assert_allclose(found, expected.numpy(), rtol=2e-5, atol=2e-6)


@pytest.mark.parametrize("rate", [1.0, 0.02])
def test_a_clients_step_descends_torchs_own_gradient_of_the_plain_objective(rate: float) -> None:
    """One epoch of one whole mini-batch moves every parameter by minus its rate times the gradient of Eq. 20."""
    block = made_block((1,))
    settings = FedIarSettings(
        dim=D, warmup=0, batch_size=4096, lr=0.1, lr_items=0.2, private_rate=rate, items_scale=0.5, init_scale=0.5
    )
    method, world = FedIar(settings), World("w", M, 1, 1)
    server, private = method.start_server(world, Keys(1, 0)), method.start_clients(world, block, Keys(1, 0))
    private.tables[0] = np.random.default_rng(2).normal(size=(M, D)).astype(np.float32)
    private = replace(private, own=np.ones_like(private.own))
    before = copy.deepcopy(private)
    update = method.local_update(private, method.download(server, block.clients), block, Keys(1, 1))

    samples = draw(block, settings.negatives, Keys(1, 1).clients(block, "negatives"))
    items = samples.rows_ids[samples.row]
    u, theta, bias, local, common = leaves = torched(
        before.users[0, :D], before.users[0, D:], before.bias[0], before.tables[0], server.items
    )
    psi = dict(zip(before.networks, torched(*(a[0] for a in before.networks.values())), strict=True))
    label = torch.from_numpy(samples.label.astype(np.float64))
    mean = client_loss(u, theta, bias, local[items], common[items], psi, label) / len(items)
    slopes = [g.numpy() for g in torch.autograd.grad(mean, [*leaves, *psi.values()])]
    np.testing.assert_allclose(update.private.users[0, :D], before.users[0, :D] - 0.1 * slopes[0], atol=1e-6)
    np.testing.assert_allclose(update.private.users[0, D:], before.users[0, D:] - 0.1 * slopes[1], atol=1e-6)
    np.testing.assert_allclose(update.private.bias[0], before.bias[0] - 0.1 * slopes[2], atol=1e-6)
    np.testing.assert_allclose(update.private.tables[0], before.tables[0] - 0.2 * rate * slopes[3], atol=1e-6)
    np.testing.assert_allclose(update.upload.rows.dense()[0], -0.2 * slopes[4], atol=1e-6)
    for name, slope in zip(psi, slopes[5:], strict=True):
        np.testing.assert_allclose(update.private.networks[name][0], before.networks[name][0] - 0.1 * slope, atol=1e-6)
    assert all(np.abs(slope).max() > 1e-4 for slope in slopes)


def test_fediar_warms_up_then_keeps_a_table_of_its_own_and_explores_as_eq_17_says() -> None:
    block = made_block()
    method = FedIar(FedIarSettings(dim=D, warmup=1, lr_items=1.0, mu_n=0.0, mu_d=2.0, server_lr=0.3, clusters=3))
    world, keys = World("w", M, block.n_users, block.n_clients), Keys(1, 0)
    server, private = method.start_server(world, keys), method.start_clients(world, block, keys)
    warm = method.local_update(private, method.download(server, block.clients), block, Keys(1, 1))
    assert not warm.private.own.any()
    assert not warm.private.tables.any(), "local and global are the same during warm-up"
    after = method.aggregate(server, iter([Reply(block.clients, warm.upload)]), Keys(1, 1))
    mean = warm.upload.rows.dense().mean(0)
    step = 0.3 * 2.0 * dimension_loss(server.items, method.settings.gamma)[1]
    np.testing.assert_allclose(after.items, server.items + mean - step, atol=1e-6)
    own = method.local_update(warm.private, method.download(after, block.clients), block, Keys(1, 2))
    assert own.private.own.all()
    untouched = np.setdiff1d(np.arange(M), own.upload.rows.ids[: own.upload.rows.start[1]])
    np.testing.assert_array_equal(own.private.tables[0][untouched], after.items[untouched])
    assert np.abs(own.private.tables[0] - after.items).max() > 0


def test_the_local_rate_is_one_of_plain_descent() -> None:
    with pytest.raises(BadInput, match="private_rate=1"):
        FedIar(FedIarSettings(optimizer="adam", private_rate=0.1))


@pytest.mark.parametrize(("gate", "factor"), [("sum", 1.0), ("equal", 0.5)])
def test_without_algf_the_views_are_added_in_warm_up_and_after(gate: str, factor: float) -> None:
    """Table 3 adds the two tables, which are one during warm-up; the mean is a setting."""
    block = made_block()
    method = FedIar(FedIarSettings(dim=D, warmup=1, gate=gate, lr_items=1.0))
    world = World("w", M, block.n_users, block.n_clients)
    server, private = method.start_server(world, Keys(1, 0)), method.start_clients(world, block, Keys(1, 0))
    held = method.model(method.download(server, block.clients))
    warm = method.score(private, held, block)
    np.testing.assert_allclose(warm, 2 * factor * private.users[:, D:] @ server.items.T, rtol=1e-5, atol=1e-7)
    private.tables[:] = np.random.default_rng(3).normal(size=private.tables.shape).astype(np.float32)
    own = replace(private, own=np.ones_like(private.own))
    fused = factor * (private.tables + server.items)[block.client_of_user]
    wanted = np.einsum("ud,uid->ui", private.users[:, D:], fused)
    np.testing.assert_allclose(method.score(own, held, block), wanted, rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("start", ["common", "own"])
def test_fediars_score_functions_start_alike_or_apart_and_user_vectors_always_apart(start: str) -> None:
    block = made_block()
    method = FedIar(FedIarSettings(dim=D, scorer_start=start))
    users = method.start_clients(World("w", M, block.n_users, block.n_clients), block, Keys(1, 0)).users
    assert (users[0, :D] != users[1, :D]).all()
    assert (users[0, D:] == users[1, D:]).all() == (start == "common")
    assert (users[:, D:] != 0).all()


def test_fediars_server_takes_the_rate_of_the_item_tables_and_never_overshoots() -> None:
    assert FedIar(FedIarSettings(lr_items=500.0)).rate(2000) == 500.0
    assert FedIar(FedIarSettings(lr_items=500.0)).rate(40) == 40.0
    assert FedIar(FedIarSettings(lr_items=500.0, server_lr=700.0)).rate(40) == 700.0


@pytest.mark.parametrize("view", ["density", "printed"])
def test_the_servers_step_is_torchs_own_gradient_of_both_views(view: str) -> None:
    table = np.random.default_rng(5).normal(size=(30, D)).astype(np.float32)
    settings = FedIarSettings(dim=D, mu_d=0.4, mu_n=0.7, clusters=3, gamma=0.05, sample_view=view)
    step, _ = FedIar(settings).exploration(IarServer(table), Keys(1, 1))
    cluster = cluster_items(table, 3, settings.concentration, keyed.stream(1, 1, "clusters")).cluster
    (z,) = torched(table)
    whole = 0.4 * dimension_view(z, 0.05) + 0.7 * sample_view(z, cluster, 0.05, view == "density")
    (slope,) = torch.autograd.grad(whole, [z])
    np.testing.assert_allclose(step, slope.numpy(), atol=2e-6)


@pytest.mark.parametrize("view", ["density", "printed"])
def test_fediars_sample_view_is_eq_16_with_its_matrices_over_n_or_as_printed(view: str) -> None:
    z = np.random.default_rng(5).normal(size=(30, D))
    settings = FedIarSettings(dim=D, mu_d=0.0, mu_n=0.7, clusters=3, gamma=0.05, sample_view=view)
    step, _ = FedIar(settings).exploration(IarServer(z.astype(np.float32)), Keys(1, 1))
    seed = keyed.stream(1, 1, "clusters")
    cluster = cluster_items(z.astype(np.float32), 3, settings.concentration, seed).cluster
    share = 1 / D if view == "printed" else 1 / (D * len(z))
    middle = np.eye(D) - 1 / D
    centroids = np.stack([z[cluster == c].mean(0) for c in cluster])
    values, vectors = np.linalg.eigh(share * centroids @ middle @ centroids.T + 0.05 * np.eye(len(z)))
    logarithm = (vectors * np.log(values)) @ vectors.T
    np.testing.assert_allclose(step, -0.7 * 2 * share * logarithm @ z @ middle, atol=2e-6)
