"""The aggregation family: each method by hand, and FedCA's claims of section 5.2 about what it equals."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import settings as hypothesis_settings
from hypothesis import strategies as st

from fedrec.core import wire
from fedrec.core.block import Block, World
from fedrec.core.messages import Array, Float32, Rows
from fedrec.core.method import Keys, Reply
from fedrec.core.settings import build
from fedrec.data.ragged import Ragged, offsets
from fedrec.keyed import keys_of
from fedrec.maths.clustering import kmeans, means_of_lists, sketch
from fedrec.maths.graphs import Kind, cosines, neighbourhoods, smoothed
from fedrec.methods._shared.profiles import centres, interacted
from fedrec.methods.fedfast import representative_weights
from found_methods import find_federated

ITEMS = 12
FAMILY = ("fedatt", "fedfast", "perfedrec", "pfedgraph", "gpfedrec", "pfedrec")


def made_block(users_of_client: tuple[int, ...] = (1,) * 8, seed: int = 0) -> Block:
    """Clients with a few items each; the first clients like the first items, the last the last ones."""
    draw = np.random.default_rng(seed)
    users = sum(users_of_client)
    lists = []
    for user in range(users):
        side = np.arange(ITEMS // 2) + (0 if user < users // 2 else ITEMS // 2)
        lists.append(np.sort(draw.choice(side, draw.integers(2, 5), replace=False)))
    train = Ragged(offsets(np.array([len(own) for own in lists])), np.concatenate(lists).astype(np.int32))
    return Block(
        n_items=ITEMS,
        clients=np.arange(len(users_of_client)),
        client_keys=keys_of(f"client {c}" for c in range(len(users_of_client))),
        user_start=offsets(np.array(users_of_client)),
        user_keys=keys_of(f"user {u}" for u in range(users)),
        train=train,
        exclude=train,
    )


def world_of(block: Block) -> World:
    return World("made", ITEMS, block.n_users, block.n_clients)


class Federation:
    """A method with its server and clients, round by round."""

    def __init__(self, name: str, block: Block, seed: int = 5, **settings: Any) -> None:
        kind = find_federated(name)
        self.method: Any = kind(build(kind.Settings, {"dim": 3, "epochs": 2, **settings}, name))
        self.block, self.seed, self.number = block, seed, 0
        self.server = self.method.start_server(world_of(block), Keys(seed, 0))
        self.private = self.method.start_clients(world_of(block), block, Keys(seed, 0))

    def work(self) -> Any:
        download = self.method.download(self.server, self.block.clients)
        return self.method.local_update(self.private, download, self.block, Keys(self.seed, self.number + 1))

    def round(self) -> Any:
        done = self.work()
        self.number += 1
        self.private = done.private
        reply = Reply(self.block.clients, done.upload)
        self.server = self.method.aggregate(self.server, iter([reply]), Keys(self.seed, self.number))
        return done


def whole(start: Float32, rows: Rows) -> Float32:
    """Everybody's table after training ``[clients, n_items, d]``."""
    return start + rows.dense()


def mixtures(
    tables: Float32, similarity: Array | None, complementarity: Array | None, sizes: Array, alpha: float, beta: float
) -> Array:
    """FedCA's aggregation: Eq. (8) and the mixture."""
    from fedrec.maths.composite import composite_weights, mix

    weights = composite_weights(similarity, complementarity, np.asarray(sizes, np.float64), alpha, beta)
    return mix(tables.astype(np.float32), weights)


# section 5.2, claim by claim


def test_fcf_is_alpha_zero_beta_zero_with_equal_p() -> None:
    run = Federation("fcf", made_block())
    start = run.server.items
    tables = whole(start, run.work().upload.rows)
    run.round()
    for mixed in mixtures(tables, None, None, np.ones(8), 0, 0):
        np.testing.assert_allclose(run.server.items, mixed, atol=1e-6)


def test_fedavg_is_alpha_zero_beta_zero_with_p_by_size() -> None:
    run = Federation("fedavg", made_block())
    tables = whole(run.server.items, run.work().upload.rows)
    run.round()
    for mixed in mixtures(tables, None, None, run.block.sizes, 0, 0):
        np.testing.assert_allclose(run.server.items, mixed, atol=1e-6)


def test_fedca_without_its_terms_runs_as_fedavg() -> None:
    plain = Federation("fedavg", made_block())
    composite = Federation("fedca", made_block(), alpha=0, beta=0, rho=0, r=1)
    for _ in range(3):
        plain.round(), composite.round()
        for table in composite.server.tables:
            np.testing.assert_allclose(table, plain.server.items, atol=1e-5)
    np.testing.assert_allclose(composite.private.users, plain.private.users, atol=1e-5)


@hypothesis_settings(max_examples=8, deadline=None)
@given(alpha=st.floats(0, 2), share=st.sampled_from([0.4, 1.0]), seed=st.integers(0, 50))
def test_pfedgraph_is_fedca_with_beta_zero(alpha: float, share: float, seed: int) -> None:
    block = made_block(seed=seed)
    graph = Federation("pfedgraph", block, seed, alpha=alpha, r=share)
    composite = Federation("fedca", block, seed, alpha=alpha, beta=0, rho=0, r=share)
    for _ in range(2):
        graph.round(), composite.round()
    np.testing.assert_allclose(graph.server.tables, composite.server.tables, atol=2e-5)
    np.testing.assert_allclose(graph.private.users, composite.private.users, atol=2e-5)


@hypothesis_settings(max_examples=8, deadline=None)
@given(seed=st.integers(0, 50), norm=st.sampled_from(["l2", "l1"]))
def test_fedatt_is_alpha_zero_beta_zero_with_p_the_softmax_of_distances(seed: int, norm: str) -> None:
    run = Federation("fedatt", made_block(seed=seed), seed, distance=norm)
    start = run.server.items
    tables = whole(start, run.work().upload.rows)
    change = (tables - start).reshape(8, -1)
    distance = np.abs(change).sum(1) if norm == "l1" else np.sqrt((change**2).sum(1))
    p = np.exp(distance) / np.exp(distance).sum()
    run.round()
    for mixed in mixtures(tables, None, None, p, 0, 0):
        np.testing.assert_allclose(run.server.items, mixed, atol=1e-5)


@hypothesis_settings(max_examples=8, deadline=None)
@given(seed=st.integers(0, 50), clusters=st.integers(1, 4), alpha=st.floats(1, 5))
def test_perfedrec_is_similarity_of_one_within_clusters_and_zero_across(seed: int, clusters: int, alpha: float) -> None:
    run = Federation(
        "perfedrec", made_block(seed=seed), seed, clusters=clusters, cluster_share=1, client_weights="equal"
    )
    for _ in range(2):  # in the second round clients start from different tables
        starts = run.method.start_tables(run.private, run.method.download(run.server, run.block.clients))[0]
        tables = whole(starts, run.work().upload.rows)
        run.round()
        labels = run.server.labels
        indicator = (labels[:, None] == labels[None, :]).astype(np.float32)
        expected = mixtures(tables, indicator, None, np.ones(8), alpha, 0)
        received = run.method.start_tables(run.private, run.method.download(run.server, run.block.clients))[0]
        np.testing.assert_allclose(received, expected, atol=1e-5)
        np.testing.assert_allclose(run.server.items, tables.mean(0), atol=1e-5)


def test_perfedrec_with_one_cluster_is_fedavg() -> None:
    plain, clustered = Federation("fedavg", made_block()), Federation("perfedrec", made_block(), clusters=1)
    for _ in range(3):
        plain.round(), clustered.round()
    np.testing.assert_allclose(clustered.server.cluster_items[0], plain.server.items, atol=1e-5)
    np.testing.assert_allclose(clustered.server.items, plain.server.items, atol=1e-5)


def test_fedfast_with_one_cluster_and_everybody_its_representative_is_fcf() -> None:
    plain, fast = Federation("fcf", made_block()), Federation("fedfast", made_block(), clusters=1, r=1)
    for _ in range(3):
        plain.round(), fast.round()
    np.testing.assert_allclose(fast.server.items, plain.server.items, atol=1e-5)


def test_fedfast_is_a_choice_of_p_and_not_of_beta() -> None:
    """Section 5.2 claims alpha = 0, beta != 0. What is exact: alpha = beta = 0 with p of the representatives."""
    run = Federation("fedfast", made_block(), clusters=2, r=0.5)
    done = run.work()
    tables = whole(run.server.items, done.upload.rows)
    run.round()
    from fedrec import keyed

    labels = kmeans(centres(done.upload), 2, keyed.stream(5, 1, "clusters"))
    p = representative_weights(labels, done.upload.tickets, 0.5)
    for mixed in mixtures(tables, None, None, p, 0, 0):
        np.testing.assert_allclose(run.server.items, mixed, atol=1e-6)
    composite = Federation("fedca", made_block(), alpha=0, beta=2, rho=0, r=1)
    composite.round()
    assert np.ptp(composite.server.tables, axis=0).max() > 1e-3  # personal: no one table can equal them


# single parts, by hand


def test_representatives_count_for_their_cluster() -> None:
    labels, tickets = np.array([0, 0, 0, 1, 1, 2]), np.array([5, 1, 9, 7, 2, 3], np.uint32)
    weights = representative_weights(labels, tickets, 0.5)
    # clusters of 3, 2 and 1 among 6; two, one and one represent them, those with the lowest tickets
    np.testing.assert_allclose(weights, [3 / 12, 3 / 12, 0, 0, 2 / 6, 1 / 6])
    assert weights.sum() == pytest.approx(1)


def test_fedatt_takes_a_step_of_epsilon() -> None:
    one, two = Federation("fedatt", made_block()), Federation("fedatt", made_block(), epsilon=2.0)
    start = one.server.items.copy()
    one.round(), two.round()
    np.testing.assert_allclose(two.server.items - start, 2 * (one.server.items - start), atol=1e-5)


def test_fedatt_weights_survive_large_distances_and_come_in_parts() -> None:
    run = Federation("fedatt", made_block(), lr=50.0, optimizer="sgd")
    done = run.work()
    together = run.method.aggregate(run.server, iter([Reply(run.block.clients, done.upload)]), Keys(5, 1))
    parts = [Reply(np.array([c]), replace(done.upload, rows=done.upload.rows.take(np.array([c])))) for c in range(8)]
    apart = run.method.aggregate(run.server, iter(parts), Keys(5, 1))
    assert np.isfinite(together.items).all()
    np.testing.assert_allclose(together.items, apart.items, rtol=1e-5, atol=1e-5)


def test_neighbourhoods_by_hand() -> None:
    similarity = np.array([[1.0, 0.9, 0.2], [0.9, 1.0, 0.3], [0.2, 0.3, 1.0]], np.float32)
    nearest = neighbourhoods(similarity, "nearest", 2, 1.0)
    np.testing.assert_allclose(nearest, [[0.5, 0.5, 0], [0.5, 0.5, 0], [0, 0.5, 0.5]])
    farthest = neighbourhoods(similarity, "farthest", 1, 1.0)  # a distance taken for a similarity
    np.testing.assert_allclose(farthest, [[0, 0, 1], [0, 0, 1], [1, 0, 0]])
    # mean of the nine 5.8 / 9 = 0.644: 0.9 and 1 are above it
    above = neighbourhoods(similarity, "nearest", 0, 1.0)
    np.testing.assert_allclose(above, [[0.5, 0.5, 0.0], [0.5, 0.5, 0.0], [0.0, 0.0, 1.0]])
    np.testing.assert_allclose(neighbourhoods(similarity, "nearest", 0, 9.0), np.eye(3))  # nobody: by oneself


def test_cosines_of_whole_tables() -> None:
    tables = np.random.default_rng(0).normal(size=(4, 5, 3)).astype(np.float32)
    flat = tables.reshape(4, -1)
    length = np.linalg.norm(flat, axis=1)
    np.testing.assert_allclose(cosines(tables), flat @ flat.T / np.outer(length, length), atol=1e-5)
    np.testing.assert_allclose(cosines(tables, np.array([3, 1]))[0, 1], cosines(tables)[3, 1], atol=1e-6)


@pytest.mark.parametrize("graph", ["nearest", "farthest"])
def test_gpfedrec_mixes_neighbours_and_shares_their_mean(graph: Kind) -> None:
    run = Federation("gpfedrec", made_block(), graph=graph, neighbours=3, layers=2)
    tables = whole(run.method.blended(run.server.tables, run.server.items), run.work().upload.rows)
    run.round()
    weights = np.asarray(neighbourhoods(cosines(tables), graph, 3, 1.0))
    expected = np.einsum("uv,vid->uid", weights @ weights, tables)
    np.testing.assert_allclose(run.server.tables, expected, atol=1e-5)
    np.testing.assert_allclose(run.server.items, expected.mean(0), atol=1e-5)


def test_gpfedrec_keeps_the_table_of_who_was_absent() -> None:
    run = Federation("gpfedrec", made_block())
    run.round()
    before = run.server
    some = np.array([1, 4, 6])
    block = run.block.take(some)
    download = run.method.download(before, some)
    from fedrec.core.messages import gather

    done = run.method.local_update(gather(run.private, run.block, some), download, block, Keys(5, 2))
    after = run.method.aggregate(before, iter([Reply(some, done.upload)]), Keys(5, 2))
    absent = np.setdiff1d(np.arange(8), some)
    np.testing.assert_array_equal(after.tables[absent], before.tables[absent])
    assert (after.tables[some] != before.tables[some]).any()


def test_interacted_rows_are_those_of_the_trained_table() -> None:
    block = made_block((2, 1, 3))
    draw = np.random.default_rng(1)
    tables = draw.normal(size=(3, ITEMS, 2)).astype(np.float32)
    ids = np.array([0, 1, 4, 5, 2, 3, 6, 8, 9], np.int32)  # some own items, some not
    rows = Rows(np.array([0, 4, 6, 9]), ids, draw.normal(size=(9, 2)).astype(np.float32), ITEMS)
    owner = block.client_of_user[block.train.owners]
    np.testing.assert_allclose(interacted(block, tables, rows), whole(tables, rows)[owner, block.train.values])
    np.testing.assert_allclose(interacted(block, tables[0], rows), whole(tables[0], rows)[owner, block.train.values])


def test_means_of_lists_with_an_empty_one() -> None:
    values = np.array([[1.0, 2], [3, 4], [5, 6]])
    np.testing.assert_allclose(
        means_of_lists(values, np.array([0, 2, 0, 1, 0])), [[0, 0], [2, 3], [0, 0], [5, 6], [0, 0]]
    )


@hypothesis_settings(max_examples=20, deadline=None)
@given(seed=st.integers(0, 1000), clusters=st.integers(1, 6))
def test_kmeans_ignores_the_order_of_clients(seed: int, clusters: int) -> None:
    draw = np.random.default_rng(seed)
    points = draw.normal(size=(20, 3))
    order = draw.permutation(20)
    np.testing.assert_array_equal(kmeans(points, clusters, 7)[order], kmeans(points[order], clusters, 7))


def test_kmeans_finds_what_is_apart_and_takes_few_points() -> None:
    points = np.concatenate([np.zeros((5, 2)), np.full((4, 2), 9.0)]) + np.linspace(0, 0.1, 9)[:, None]
    labels = kmeans(points, 2, 0)
    assert len(set(labels[:5])) == len(set(labels[5:])) == 1
    assert labels[0] != labels[-1]
    assert len(set(kmeans(np.zeros((4, 2)), 3, 0))) == 1
    assert len(kmeans(np.zeros((0, 2)), 3, 0)) == 0


def test_sketches_are_linear_and_keep_distances() -> None:
    draw = np.random.default_rng(0)
    tables = draw.normal(size=(30, 40, 8)).astype(np.float32)
    rows = wire.rows_of_tables(tables)
    found = sketch(rows, 256, 3)
    twice = sketch(replace(rows, values=2 * rows.values), 256, 3)
    np.testing.assert_allclose(twice, 2 * found, rtol=1e-5, atol=1e-4)
    exact = np.linalg.norm(tables[1:].reshape(29, -1) - tables[0].ravel(), axis=1)
    seen = np.linalg.norm(found[1:] - found[0], axis=1)
    assert np.abs(seen / exact - 1).mean() < 0.15
    changed = Rows(np.array([0, 2]), np.array([3, 9], np.int32), tables[0, [3, 9]], 40)  # other rows are zero
    np.testing.assert_allclose(sketch(changed, 64, 3), sketch(wire.rows_of_tables(changed.dense()), 64, 3), atol=1e-4)


def test_the_graph_encoder_averages_over_layers() -> None:
    points = np.array([[0.0], [1.0], [10.0]])
    # nearest neighbour of 0 is 1, of 1 is 0, of 10 is 1; layer one: 1, 0, 1; mean with layer zero
    np.testing.assert_allclose(smoothed(points, 1, 1), [[0.5], [0.5], [5.5]])
    np.testing.assert_allclose(smoothed(points, 1, 2), [[1 / 3], [2 / 3], [11 / 3]])
    np.testing.assert_array_equal(smoothed(points, 1, 0), points)


def test_perfedrec_clusters_by_model_as_well() -> None:
    run = Federation("perfedrec", made_block(), clusters=2, features="model", graph_layers=0, epochs=10)
    done = run.round()
    assert done.upload.profiles is None
    run.round()
    labels = run.server.labels
    # the two halves of the clients share no positive item
    assert len(set(labels)) == 2


# PFedRec


def one_user() -> Block:
    """One client with items 1 and 2; nothing is free as a negative but item 0."""
    train = Ragged(np.array([0, 2]), np.array([1, 2], np.int32))
    return replace(made_block((1,)), n_items=3, train=train, exclude=train)


def test_pfedrec_first_the_score_function_then_the_items() -> None:
    kind = find_federated("pfedrec")
    method = kind(build(kind.Settings, {"dim": 2, "lr": 0.5, "lr_items_factor": 2, "negatives": 1}, "pfedrec"))
    block, world = one_user(), World("one", 3, 1, 1)
    server = method.start_server(world, Keys(0, 0))
    private = method.start_clients(world, block, Keys(0, 0))
    done = method.local_update(private, method.download(server, block.clients), block, Keys(0, 1))

    table, w, b = server.items.astype(float), private.users[0].astype(float), 0.0
    samples = [(1, 1), (0, 0), (2, 1), (0, 0)]  # one batch of four: each positive with a negative
    errors = [1 / (1 + np.exp(-(table[i] @ w + b))) - y for i, y in samples]
    w = w - 0.5 * sum(e * table[i] for e, (i, _) in zip(errors, samples, strict=True)) / 4
    b = b - 0.5 * sum(errors) / 4
    np.testing.assert_allclose(done.private.users[0], w, rtol=1e-5)
    np.testing.assert_allclose(done.private.bias[0], b, rtol=1e-4)
    errors = [1 / (1 + np.exp(-(table[i] @ w + b))) - y for i, y in samples]  # with the new score function
    moved = table.copy()
    for e, (i, _) in zip(errors, samples, strict=True):
        moved[i] -= 0.5 * 2 * 3 * e * w / 4  # lr * factor * n_items
    np.testing.assert_allclose(server.items + done.upload.rows.dense()[0], moved, rtol=1e-4, atol=1e-6)


def test_pfedrec_tunes_what_it_downloads() -> None:
    run = Federation("pfedrec", made_block())
    run.round()
    download = run.method.download(run.server, run.block.clients)
    tuned = run.method.score(run.private, download, run.block)
    np.testing.assert_array_equal(tuned, run.method.score(run.private, download, run.block))
    raw = type(run.method)(run.method.settings.model_copy(update={"tune": False}))
    common = raw.score(run.private, download, run.block)
    np.testing.assert_allclose(
        common, run.private.users @ run.server.items.T + run.private.bias[:, None], rtol=1e-5, atol=1e-6
    )
    owner = run.block.train.owners
    gained = (tuned - common)[owner, run.block.train.values]
    assert (gained > 0).all()  # tuning raises what the user has


@pytest.mark.parametrize("backbone", ["mf", "ncf"])
def test_pfedrec_keeps_the_score_function(backbone: str) -> None:
    run = Federation("pfedrec", made_block(), backbone=backbone, lr_items_factor=1)
    done = run.round()
    assert done.upload.networks == {}
    assert run.server.networks == {}
    again = run.round()
    assert (again.private.users != done.private.users).any() or backbone == "ncf"


# all of them


@pytest.mark.parametrize("name", FAMILY)
@pytest.mark.parametrize("backbone", ["mf", "ncf"])
def test_organisations_and_both_backbones(name: str, backbone: str) -> None:
    """Clients with several users; a block gives what its parts give."""
    from fedrec.core.messages import gather

    small: dict[str, Any] = {"lr_items_factor": 1.0} if name == "pfedrec" else {}
    run = Federation(name, made_block((2, 1, 3, 2)), backbone=backbone, **small)
    run.round()
    download = run.method.download(run.server, run.block.clients)
    scores = run.method.score(run.private, download, run.block)
    assert scores.shape == (8, ITEMS)
    assert np.isfinite(scores).all()
    some = np.array([3, 0])
    part = run.block.take(some)
    own = run.method.score(gather(run.private, run.block, some), run.method.download(run.server, part.clients), part)
    np.testing.assert_allclose(own, scores[[6, 7, 0, 1]], atol=1e-4)
    items = np.tile(np.array([5, 0, 7], np.int32), (8, 1))
    np.testing.assert_allclose(run.method.score(run.private, download, run.block, items), scores[:, [5, 0, 7]])
    local = run.work()
    assert np.isfinite(run.method.score(local.private, local.local, run.block)).all()


@pytest.mark.parametrize(
    ("name", "uploads", "downloads"),
    [("fedatt", 1, 1), ("pfedrec", 1, 1), ("perfedrec", 1, 2), ("fedfast", 1, 1), ("pfedgraph", 1, 1)],
)
def test_bytes_are_those_of_table_7(name: str, uploads: int, downloads: int) -> None:
    """FedCA Table 7 at 64 bits: tables of m f numbers, and |I_u| f for the profile of PerFedRec and FedFast."""
    run = Federation(name, made_block())
    form = wire.Form("dense", "float64")
    table = ITEMS * 3 * 8
    done = run.work()
    profile = run.block.sizes.sum() * 3 * 8 if name in ("perfedrec", "fedfast") else 0
    told = {"perfedrec": 4, "fedfast": 8, "pfedgraph": 8}.get(name, 0)  # size (and ticket) beside the table
    assert wire.payload(done.upload, form) == 8 * (uploads * table + told) + profile
    one = run.method.download(run.server, np.array([2]))
    assert wire.payload(one, form) == downloads * table
