"""Fed3CR and FedRAP: every equation against a plain reference, every gradient against torch's own."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
import torch

from fedrec import keyed
from fedrec.backbones import find as find_backbone
from fedrec.core.block import Block
from fedrec.core.method import Keys
from fedrec.data.ragged import Ragged, offsets
from fedrec.learn.samples import draw
from fedrec.learn.transfer import MATRIX, generate, generator_sizes, start_generator
from fedrec.learn.two_tables import Objective, train_two_tables

D, M = 4, 23


def made_block(users_each=(1, 1, 2, 1), seed=0) -> Block:
    rng = np.random.default_rng(seed)
    n_users = sum(users_each)
    lists = [np.sort(rng.choice(M, rng.integers(2, 9), replace=False)) for _ in range(n_users)]
    train = Ragged(offsets(np.array([len(x) for x in lists])), np.concatenate(lists).astype(np.int32))
    clients = len(users_each)
    return Block(
        M, np.arange(clients), np.arange(clients, dtype=np.uint64) + np.uint64(11), offsets(np.array(users_each)),
        np.arange(n_users, dtype=np.uint64) + np.uint64(99), train, train,
    )  # fmt: skip


def parameters(block: Block, transfer: str, affine: bool, layers: int = 3) -> dict[str, Any]:
    rng = np.random.default_rng(1)
    networks: dict[str, np.ndarray] = {}
    if transfer == "ace":
        networks = start_generator(5, D, layers)
    elif transfer != "none":
        networks[MATRIX] = (np.eye(D) + 0.3 * rng.normal(size=(D, D))).astype(np.float32)
    if affine:
        networks["bias"] = rng.normal(size=block.n_users).astype(np.float32)
    return {
        "users": rng.normal(size=(block.n_users, D)).astype(np.float32),
        "shared": rng.normal(size=(M, D)).astype(np.float32),
        "private": rng.normal(size=(block.n_clients, M, D)).astype(np.float32),
        "networks": networks,
    }


def trained(block, objective, scorer="mf", engine="auto", layers=3):
    given = parameters(block, objective.transfer, scorer == "affine", layers)
    if scorer == "ncf":
        one = find_backbone("ncf").start(np.array([3], np.uint64), D)
        given["networks"] |= {name: array[0] for name, array in one.items()}
    samples = draw(block, 4, np.arange(block.n_clients, dtype=np.uint64))
    keys = Keys(3, 1).clients(block, "batches")
    out = train_two_tables(
        block, samples, given["users"], given["shared"], given["private"], given["networks"],
        find_backbone(scorer), objective, keys, engine=engine,
    )  # fmt: skip
    return out, given["private"]


FULL = Objective(
    transfer="ace", beta_a=0.7, beta_o=0.3, epochs=3, batch_size=16, lr=0.02, lr_items=0.02, lr_transfer=0.01
)
VARIANTS = {
    "rec only": replace(FULL, transfer="none", beta_a=0, beta_o=0),
    "C1": replace(FULL, beta_a=0, beta_o=0),
    "C2": replace(FULL, transfer="none", beta_o=0),
    "C3": replace(FULL, transfer="none", beta_a=0),
    "C4": replace(FULL, transfer="none"),
    "C5": replace(FULL, beta_o=0),
    "C6": replace(FULL, beta_a=0),
    "full": FULL,
    "most vectors below the floor": replace(FULL, norm_floor=2.0),
    "no vector below the floor": replace(FULL, norm_floor=1e-6),
    "a slower private table": replace(FULL, private_rate=0.3, lambda_=1.0),
    "consensus transfer": replace(FULL, transfer="consensus"),
    "fedrap": replace(FULL, transfer="none", beta_a=0, beta_o=0, lambda_=2.0, mu=3.0, reduction="mean", lr_items=0.5),
    "full on fedrap": replace(FULL, lambda_=2.0, mu=3.0),
}


@pytest.mark.parametrize("scorer", ["mf", "affine"])
@pytest.mark.parametrize("name", list(VARIANTS))
def test_gradients_written_out_equal_torchs_own(name, scorer):
    block = made_block()
    fast, fast_private = trained(block, VARIANTS[name], scorer)
    plain, plain_private = trained(block, VARIANTS[name], scorer, "torch")
    assert_alike((fast, fast_private), (plain, plain_private), rtol=2e-4, atol=2e-5, loss=1e-4)
    assert np.abs(fast.shared).max() > 1e-3


def assert_alike(one, other, *, rtol, atol, loss):
    """Two trainings, each what it gives and the private tables that it wrote."""
    (left, left_private), (right, right_private) = one, other
    np.testing.assert_allclose(left.shared, right.shared, rtol=rtol, atol=atol)
    np.testing.assert_allclose(left_private, right_private, rtol=rtol, atol=atol)
    np.testing.assert_allclose(left.users, right.users, rtol=rtol, atol=atol)
    np.testing.assert_allclose(left.loss, right.loss, rtol=loss)
    assert left.networks.keys() == right.networks.keys()
    for key in left.networks:
        np.testing.assert_allclose(left.networks[key], right.networks[key], rtol=rtol, atol=atol, err_msg=key)


@pytest.mark.parametrize("scorer", ["mf", "affine"])
@pytest.mark.parametrize("name", list(VARIANTS))
def test_rows_in_place_equal_rows_copied(name, scorer):
    """The kernel of the CPU against plain torch, which is what another device runs."""
    block = made_block()
    kernel = trained(block, VARIANTS[name], scorer)
    copied = trained(block, VARIANTS[name], scorer, "closed")
    assert_alike(kernel, copied, rtol=1e-4, atol=1e-5, loss=1e-5)


@pytest.mark.parametrize("engine", ["auto", "closed", "torch"])
def test_a_client_without_interactions_uploads_no_change(engine, monkeypatch):
    block = made_block((1, 1, 1, 1))
    lists = [block.train[u] if u != 2 else block.train[u][:0] for u in range(4)]
    train = Ragged(offsets(np.array([len(x) for x in lists])), np.concatenate(lists))
    # rooms for results come with any content: make sure that it cannot be seen
    monkeypatch.setattr("fedrec.learn.two_tables._room", lambda shape, device: np.full(shape, np.nan, np.float32))
    start = parameters(block, "ace", True)["private"]
    out, private = trained(replace(block, train=train, exclude=train), FULL, "affine", engine)
    assert (out.shared[2] == 0).all()
    assert all((value[2] == 0).all() for value in out.networks.values())
    np.testing.assert_array_equal(private[2], start[2])
    assert np.isfinite(out.shared).all()
    assert (np.abs(out.shared[[0, 1, 3]]).max(axis=(1, 2)) > 1e-4).all()


def test_scratch_gives_the_same_memory_for_a_name():
    from fedrec.learn.two_tables_scratch import Scratch

    scratch = Scratch("cpu")
    large, small = scratch.take("a", 4, 6), scratch.take("a", 2, 3)
    assert small.data_ptr() == large.data_ptr()
    assert scratch.take("b", 4, 6).data_ptr() != large.data_ptr()
    assert scratch.take("a", 5, 6).shape == (5, 6)


def test_sums_over_clients_do_not_depend_on_threads(monkeypatch):
    from fedrec.methods import consensus

    monkeypatch.setattr(consensus, "SUM_LEAST", 7)
    changes = np.random.default_rng(0).normal(size=(9, 13, 5)).astype(np.float32)
    found = []
    for threads in (1, 4):
        monkeypatch.setenv("FEDREC_THREADS", str(threads))
        total = np.ones((13, 5))
        consensus.add_clients(total, changes)
        found.append(total)
    np.testing.assert_array_equal(found[0], found[1])
    np.testing.assert_allclose(found[0], 1 + changes.astype(np.float64).sum(0), rtol=1e-14)


def test_local_views_score_with_the_networks_as_trained():
    """What is judged after local work is the download's networks plus the client's own changes."""
    from fedrec.methods.consensus import LocalViews
    from fedrec.methods.fed3cr import Fed3cr

    block, rng = made_block(), np.random.default_rng(4)
    method = Fed3cr(Fed3cr.Settings(dim=D, layers=2))
    given = parameters(block, "ace", False, 2)
    private = method.Private(given["users"], np.zeros(block.n_users, np.float32), given["private"])
    layers = given["networks"]
    moved = {n: rng.normal(size=(block.n_clients, *a.shape)).astype(np.float32) * 0.1 for n, a in layers.items()}
    local = LocalViews(given["shared"], None, layers, moved)
    together = method.matrices(private, local, block)
    for client in range(block.n_clients):
        own = method.Download(given["shared"], {n: a + moved[n][client] for n, a in layers.items()})
        np.testing.assert_allclose(together[client], method.matrices(private, own, block)[client], rtol=1e-5, atol=1e-6)


ALTERNATIVES = {
    "Eq. 15 as printed": replace(FULL, consistency="ranking-printed"),
    "similarity": replace(FULL, consistency="similarity"),
    "contrast": replace(FULL, consistency="contrast"),
    "l2": replace(FULL, complementarity="l2"),
    "mutual information": replace(FULL, complementarity="mutual-information"),
    "unified transfer": replace(FULL, transfer="unified"),
}


@pytest.mark.parametrize("name", list(ALTERNATIVES))
def test_alternatives_of_figure_4_and_table_iv_train(name):
    block = made_block()
    out, private = trained(block, ALTERNATIVES[name])
    assert np.isfinite(out.shared).all()
    assert np.isfinite(private).all()
    plain, _ = trained(block, FULL)
    assert np.abs(out.shared - plain.shared).max() > 1e-5, "another loss, another result"


def test_the_plug_in_trains_a_scorer_with_layers():
    out, _ = trained(made_block(), FULL, "ncf")
    assert {"weight_0", "transfer_weight_0"} <= out.networks.keys()
    assert np.abs(out.networks["weight_0"]).max() > 0


def test_chunks_of_clients_change_nothing(monkeypatch):
    block = made_block()
    whole, whole_private = trained(block, FULL)
    monkeypatch.setattr("fedrec.learn.two_tables.CPU_NUMBERS", 1)
    apart, apart_private = trained(block, FULL)
    # batched products round differently for one client and for many; nothing else may differ
    np.testing.assert_allclose(whole.shared, apart.shared, rtol=2e-4, atol=2e-5)
    np.testing.assert_allclose(whole_private, apart_private, rtol=2e-4, atol=2e-5)


def plain_losses(objective: Objective):
    """Eq. 9-19 written down once more, in numpy, for one client; the value that a step descends."""
    rng = np.random.default_rng(8)
    shared, private = rng.normal(size=(M, D)), rng.normal(size=(M, D))
    users, matrix = rng.normal(size=D), rng.normal(size=(D, D))
    return shared, private, users, matrix


def test_eq_9_and_10_the_transfer_matrix_by_hand():
    networks = start_generator(5, D, 2)
    proto = np.concatenate([np.arange(D), -np.arange(D)]).astype(np.float32)
    hidden = np.maximum(proto @ networks["transfer_weight_0"] + networks["transfer_bias_0"], 0)
    wanted = (hidden @ networks["transfer_weight_1"] + networks["transfer_bias_1"]).reshape(D, D)
    layers = {name: torch.from_numpy(array)[None] for name, array in networks.items()}
    found, read = generate(torch.from_numpy(proto)[None, None], layers)
    np.testing.assert_allclose(found[0].numpy(), wanted, rtol=1e-5, atol=1e-6)
    assert len(read) == 2


def test_the_generator_has_the_papers_widths():
    assert generator_sizes(32, 2) == [(64, 128), (128, 1024)]
    assert generator_sizes(32, 4) == [(64, 128), (128, 256), (256, 512), (512, 1024)]


def test_eq_15_and_16_by_hand():
    from fedrec.learn.two_tables import Batch, Positives
    from fedrec.learn.two_tables_autograd import consistency

    shared, private, _, _ = plain_losses(FULL)
    ids = np.array([1, 4, 7])

    def distribution(table):
        proto = table[ids].mean(0)
        cosine = table @ proto / (np.linalg.norm(table, axis=1) * np.linalg.norm(proto))
        scaled = np.exp(10 * cosine)
        return scaled / scaled.sum()

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


def test_eq_17_and_18_by_hand():
    from fedrec.learn.two_tables_autograd import complementarity

    shared, private, _, _ = plain_losses(FULL)
    wanted = ((shared.T @ private) ** 2).sum() / D
    found = complementarity(torch.from_numpy(shared)[None], torch.from_numpy(private)[None], FULL)
    assert float(found[0]) == pytest.approx(wanted, rel=1e-9)


def test_one_step_descends_the_numerical_gradient_of_the_whole_objective():
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

    def whole(shared):
        proto = np.concatenate([shared[ids].mean(0), private[ids].mean(0)])
        state = proto
        for layer in range(3):
            state = state @ w[f"transfer_weight_{layer}"] + w[f"transfer_bias_{layer}"]
            state = np.maximum(state, 0) if layer < 2 else state
        enhanced = shared @ state.reshape(D, D).T  # Eq. 11
        logit = (enhanced + private)[items] @ user  # Eq. 12-13
        rec = (np.logaddexp(0, logit) - samples.label * logit).sum()  # Eq. 7

        def distribution(table):
            center = table[ids].mean(0)
            cosine = table @ center / (np.linalg.norm(table, axis=1) * np.linalg.norm(center))
            scaled = np.exp(10 * cosine)
            return scaled / scaled.sum()

        p, q = distribution(private), distribution(enhanced)
        l_a = -0.5 * (p * np.log(q) + q * np.log(p)).sum()
        l_o = ((enhanced.T @ private) ** 2).sum() / D
        return rec + 0.7 * l_a + 0.3 * l_o

    at = shared_start.astype(np.float64)
    for row, column in ((0, 0), (3, 2), (int(ids[0]), 1), (22, 3)):
        up, down = at.copy(), at.copy()
        up[row, column] += 1e-5
        down[row, column] -= 1e-5
        slope = (whole(up) - whole(down)) / 2e-5
        assert out.shared[0, row, column] == pytest.approx(-rate * slope, rel=5e-3, abs=1e-6)


def test_scores_are_those_of_the_fused_table_and_views_can_be_compared():
    from fedrec.core.block import World
    from fedrec.methods.fed3cr import Fed3cr, Fed3crSettings

    block = made_block()
    method = Fed3cr(Fed3crSettings(dim=D, epochs=1, layers=2, lr_items=0.01))
    world, keys = World("w", M, block.n_users, block.n_clients), Keys(1, 0)
    server, private = method.start_server(world, keys), method.start_clients(world, block, keys)
    update = method.local_update(private, method.download(server, block.clients), block, Keys(1, 1))
    for download in (method.download(server, block.clients), update.local):
        scores = method.score(update.private, download, block)
        changes = getattr(download, "changes", None)
        matrices = method.matrices(update.private, download, block)
        for user, client in enumerate(block.client_of_user):
            fused = method.fused(update.private, download, changes, matrices, int(client))
            np.testing.assert_allclose(scores[user], fused @ update.private.users[user], rtol=1e-4, atol=1e-5)
    overlap = method.overlap(update.private, update.local, block, depth=5)
    assert overlap.shape == (block.n_users,)
    assert ((overlap >= 0) & (overlap <= 1)).all()
    assert method.correlation(update.private, update.local, block, 0).shape == (D, D)


@pytest.mark.parametrize("base", ["fedmf", "fedncf", "pfedrec", "fedrap"])
def test_the_mechanism_plugs_into_other_methods(base):
    from fedrec.core.block import World
    from fedrec.methods.fed3cr import Fed3cr, Fed3crSettings

    block = made_block()
    method = Fed3cr(Fed3crSettings(dim=D, epochs=1, layers=2, lr_items=0.01, base=base))
    world, keys = World("w", M, block.n_users, block.n_clients), Keys(1, 0)
    server, private = method.start_server(world, keys), method.start_clients(world, block, keys)
    update = method.local_update(private, method.download(server, block.clients), block, Keys(1, 1))
    assert np.isfinite(method.score(update.private, update.local, block)).all()
    assert (np.abs(update.private.bias).max() > 0) == (base in ("pfedrec", "fedrap"))
    assert ("weight_0" in update.upload.networks) == (base == "fedncf")


def test_eq_18_to_21_of_fediar_the_gate_by_hand():
    from fedrec.backbones.gated import GatedViews

    model = GatedViews(hidden=3, hyper_hidden=2)
    rng = np.random.default_rng(0)
    networks = {n: a[0] for n, a in model.start(np.array([7], np.uint64), 2 * D).items()}
    u, theta, local, common = (rng.normal(size=D).astype(np.float32) for _ in range(4))
    inner = np.maximum(u @ networks["hyper_weight_0"] + networks["hyper_bias_0"], 0)
    phi = inner @ networks["hyper_weight_1"] + networks["hyper_bias_1"]  # Eq. 21
    first, rest = phi[: 2 * D * 3].reshape(2 * D, 3), phi[2 * D * 3 :]
    state = np.maximum(np.concatenate([local, common]) @ first + rest[:3], 0)
    share = 1 / (1 + np.exp(-(state @ rest[3:6] + rest[6])))  # Eq. 19
    wanted = theta @ (share * local + (1 - share) * common)  # Eq. 18
    table = np.concatenate([local, common])[None, None]
    stacked = {n: a[None] for n, a in networks.items() if n != "bias"} | {"bias": np.zeros(1, np.float32)}
    found = model.scores(np.concatenate([u, theta])[None], table, stacked)
    assert found[0, 0] == pytest.approx(wanted, rel=1e-5)
    two = torch.from_numpy(np.repeat(np.concatenate([u, theta])[None, None], 2, 1))  # a row for each sample
    layers = {n: torch.from_numpy(a) for n, a in stacked.items() if n != "bias"} | {"bias": torch.zeros(1, 2)}
    items = torch.from_numpy(np.repeat(table, 2, 1))
    np.testing.assert_allclose(model.score(two, items, layers)[0].numpy(), wanted, rtol=1e-5)


def test_fediar_warms_up_then_keeps_a_table_of_its_own_and_explores_as_eq_17_says():
    from fedrec.core.block import World
    from fedrec.core.method import Reply
    from fedrec.maths.matrix_entropy import dimension_loss
    from fedrec.methods.fediar import FedIar, FedIarSettings

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


@pytest.mark.parametrize("start", ["common", "own"])
def test_fediars_score_functions_start_alike_or_apart_and_user_vectors_always_apart(start):
    from fedrec.core.block import World
    from fedrec.methods.fediar import FedIar, FedIarSettings

    block = made_block()
    method = FedIar(FedIarSettings(dim=D, scorer_start=start))
    users = method.start_clients(World("w", M, block.n_users, block.n_clients), block, Keys(1, 0)).users
    assert (users[0, :D] != users[1, :D]).all()
    assert (users[0, D:] == users[1, D:]).all() == (start == "common")
    assert (users[:, D:] != 0).all()


def test_fediars_server_takes_the_rate_of_the_item_tables_and_never_overshoots():
    from fedrec.methods.fediar import FedIar, FedIarSettings

    assert FedIar(FedIarSettings(lr_items=500.0)).rate(2000) == 500.0
    assert FedIar(FedIarSettings(lr_items=500.0)).rate(40) == 40.0
    assert FedIar(FedIarSettings(lr_items=500.0, server_lr=700.0)).rate(40) == 700.0


@pytest.mark.parametrize("view", ["density", "printed"])
def test_fediars_sample_view_is_eq_16_with_its_matrices_over_n_or_as_printed(view):
    from fedrec.maths.dirichlet_clusters import cluster_items
    from fedrec.methods.fediar import FedIar, FedIarSettings, IarServer

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


def test_cofedrec_groups_users_by_their_changes_of_one_category():
    from fedrec.methods.cofedrec import cluster

    rng = np.random.default_rng(0)
    truth = np.repeat([0, 1, 2], 20)
    values = np.eye(3)[truth] * 5 + 0.1 * rng.normal(size=(60, 3))
    found = cluster(values, 3, 4)
    assert all(len(np.unique(found[truth == g])) == 1 for g in range(3))
    order = rng.permutation(60)
    np.testing.assert_array_equal(cluster(values[order], 3, 4), found[order])


def test_figures_are_drawn():
    from fedrec.report.figures.two_views import correlation_plot, overlap_plot

    rng = np.random.default_rng(0)
    assert overlap_plot({"fed3cr": rng.random(50), "fedrap": rng.random(50)}).axes
    both = {"fed3cr": rng.normal(size=(D, D)) * 0.01, "fedrap": rng.normal(size=(D, D))}
    assert len(correlation_plot(both).axes) == 3  # one for each, and the scale
