"""FedCIA and its relatives: what they promise beyond the laws."""

from __future__ import annotations

import tracemalloc
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from fedrec import keyed
from fedrec.core import wire
from fedrec.core.block import Block, World
from fedrec.core.loop import Plan, Progress, run_rounds
from fedrec.core.method import Keys, Reply
from fedrec.core.participation import Participation
from fedrec.core.population import population
from fedrec.core.reference import Central
from fedrec.core.settings import build
from fedrec.core.state import flatten
from fedrec.data.interactions import Interactions
from fedrec.data.load import load
from fedrec.data.partition import partition
from fedrec.data.ragged import Ragged, offsets
from fedrec.errors import BadInput
from fedrec.evaluation.protocols import find as find_protocol
from fedrec.maths.interaction_matrix import matrix
from fedrec.methods.references.ease import Ease, EaseSettings
from fedrec.methods.registry import find
from fedrec.simulate.runtime import Simulator
from found_methods import find_federated
from there import there


@pytest.fixture(scope="module")
def demo() -> Interactions:
    return load("demo")


def simulator(
    name: str, data: Interactions, seed: int = 0, block_clients: int = 1000, **given_settings: Any
) -> Simulator:
    task = find_protocol("strict").prepare(data, seed)
    kind = find_federated(name)
    method = kind(build(kind.Settings, given_settings, name))
    return Simulator(method, population(task), task, seed, block_clients=block_clients)


def run(sim: Simulator, rounds: int, participation: float = 1.0) -> Progress:
    plan = Plan(rounds, 0, Participation(participation), "download", "valid", "HR@10/99", evaluate_every=rounds)
    return run_rounds(sim, plan, Progress(), lambda record, progress: None)


def all_scores(sim: Simulator) -> np.ndarray:
    """Scores in the data's own order of users."""
    scores = sim.scores(np.arange(sim.people.world.n_clients))
    back = np.empty_like(scores)
    back[sim.people.users] = scores
    return back


def world_of(rows: np.ndarray, clients: int | None = None) -> tuple[World, Block]:
    """A block from a zero-one matrix ``[users, items]``; users dealt evenly to clients."""
    users, items = rows.shape
    clients = clients or users
    train = Ragged(offsets(rows.sum(1).astype(int)), np.nonzero(rows)[1].astype(np.int32))
    counts = np.bincount(np.arange(users) * clients // users, minlength=clients)
    block = Block(items, np.arange(clients), keyed.keys_of(range(clients)), offsets(counts),
                  keyed.keys_of(range(users)), train, train)  # fmt: skip
    return World("made", items, users, clients), block


def one_round(method: Any, world: World, block: Block) -> Any:
    """The server after one round of everybody."""
    keys = Keys(0, 1)
    server, private = method.start_server(world, Keys(0, 0)), method.start_clients(world, block, Keys(0, 0))
    update = method.local_update(private, method.download(server, block.clients), block, keys)
    return method.aggregate(server, iter([Reply(block.clients, update.upload)]), keys)


# -- fedease


@pytest.mark.parametrize("clients", [None, 1, 7])
def test_fedease_equals_centralised_ease_for_any_partition(demo: Interactions, clients: int | None) -> None:
    data = demo if clients is None else partition(demo, clients)
    sim = simulator("fedease", data, lam=20.0, block_clients=3)
    run(sim, 1)
    task = sim.evaluating.task
    central = Central(sim.people.world, task.train, task.exclude)
    ease = Ease(EaseSettings(lam=20.0))
    model, _ = ease.step(ease.start(central, Keys(0, 0)), central, Keys(0, 1))
    np.testing.assert_allclose(all_scores(sim), ease.score(model, central, np.arange(data.n_users)), atol=1e-4)


@given(st.integers(0, 10**6), st.integers(1, 5))
@settings(max_examples=15, deadline=None)
def test_fedease_equals_ease_on_random_worlds(seed: int, clients: int) -> None:
    rows = (np.random.default_rng(seed).random((10, 8)) < 0.4).astype(int)
    world, block = world_of(rows, clients)
    method = find("fedease")(build(find("fedease").Settings, {"lam": 2.0}, "fedease"))
    inverse = np.linalg.inv(rows.T @ rows + 2.0 * np.eye(8))
    weights = -inverse / np.diag(inverse)[None, :]
    np.fill_diagonal(weights, 0.0)
    np.testing.assert_allclose(one_round(method, world, block).weights, weights, atol=1e-5)


def test_fedease_counts_each_client_once(demo: Interactions) -> None:
    some, everyone = simulator("fedease", demo, lam=20.0), simulator("fedease", demo, lam=20.0)
    clients = np.arange(some.people.world.n_clients)
    run(everyone, 1)
    for number, chosen in enumerate((clients[::2], clients[::3], clients, clients), start=1):
        some.round(number, chosen, chosen, False)
    np.testing.assert_array_equal(some.server.cooccurrence, everyone.server.cooccurrence)
    np.testing.assert_allclose(some.server.weights, everyone.server.weights, atol=1e-6)
    cost, _ = some.round(9, clients, clients, False)
    assert cost.upload == 0  # nothing is asked of those who have been counted


def test_fedease_bears_noise_that_makes_the_sum_indefinite(demo: Interactions) -> None:
    sim = simulator("fedease", demo, lam=1.0, noise=5.0)
    run(sim, 1)
    assert np.isfinite(sim.server.weights).all()


def test_fedease_refuses_a_catalogue_whose_pairs_it_cannot_number() -> None:
    with pytest.raises(BadInput, match="fedspectral"):
        find_federated("fedease")().start_server(World("large", 70_000, 10, 10), Keys(0, 0))


# -- fedspectral


def test_fedspectral_finds_what_the_whole_matrix_has(demo: Interactions) -> None:
    sim = simulator("fedspectral", demo, k=3)
    run(sim, 60)
    rows = matrix(sim.people.block.train, demo.n_items, np.float64).toarray()
    normal = rows / np.sqrt(rows.sum(1))[:, None]
    degrees = rows.sum(0)
    normal = normal * np.divide(1, np.sqrt(degrees), out=np.zeros_like(degrees), where=degrees > 0)
    _, roots, vectors = np.linalg.svd(normal, full_matrices=False)
    np.testing.assert_allclose(sim.server.values, roots[:3] ** 2, atol=2e-3)
    assert abs(sim.server.vectors[:, 0] @ vectors[0]) == pytest.approx(1.0, abs=1e-4)


@pytest.mark.parametrize(
    "own", [{}, {"filter": "ease"}, {"filter": "ease", "balance": 0.25, "keep_diagonal": True}], ids=str
)
def test_fedspectral_does_not_depend_on_the_partition(demo: Interactions, own: dict[str, Any]) -> None:
    apart, together = (simulator("fedspectral", data, k=4, lam=20.0, **own) for data in (demo, partition(demo, 5)))
    run(apart, 3), run(together, 3)
    np.testing.assert_allclose(all_scores(apart), all_scores(together), rtol=1e-3, atol=1e-4)


def test_low_rank_ease_with_every_eigenvector_is_ease(demo: Interactions) -> None:
    from fedrec.maths.thin_ease import thin_ease

    rows = matrix(population(find_protocol("strict").prepare(demo, 0)).block.train, demo.n_items, np.float64)
    gram = (rows.T @ rows).toarray()
    values, vectors = np.linalg.eigh(gram)
    inverse = np.linalg.inv(gram + 20.0 * np.eye(len(gram)))
    weights = -inverse / np.diag(inverse)[None, :]
    np.fill_diagonal(weights, 0.0)
    found = thin_ease(vectors, values, 20.0).scores(rows)
    np.testing.assert_allclose(found, rows @ weights, atol=2e-3)


@pytest.mark.parametrize("balance", [0.0, 0.25, 0.5])
def test_fedspectral_with_every_eigenpair_is_ease(demo: Interactions, balance: float) -> None:
    thin = simulator("fedspectral", demo, k=demo.n_items, filter="ease", lam=20.0, balance=balance, keep_diagonal=True)
    whole = simulator("fedease", demo, lam=20.0)
    run(thin, 2), run(whole, 1)
    np.testing.assert_allclose(all_scores(thin), all_scores(whole), atol=5e-3)


def test_fedspectral_uploads_one_thin_table_a_round(demo: Interactions) -> None:
    sim = simulator("fedspectral", demo, k=4)
    progress = run(sim, 1)
    assert progress.records[0].bytes["upload"] == demo.n_items * (4 + 1) * 4


def test_fedspectral_learns_from_parts_of_the_clients(demo: Interactions) -> None:
    whole, parts = simulator("fedspectral", demo, k=8), simulator("fedspectral", demo, k=8)
    run(whole, 6), run(parts, 25, participation=0.3)
    angles = np.linalg.svd(whole.server.vectors[:, :2].T @ parts.server.vectors)[1]
    assert angles.min() > 0.9


# -- fedcia


@given(st.integers(3, 9), st.integers(1, 4), st.integers(0, 10**6))
@settings(max_examples=25, deadline=None)
def test_theorem_1_the_mean_of_local_linear_filters_is_the_global_one(n: int, popularity: int, seed: int) -> None:
    """With every item equally popular, F_agg = (p / N) F_ideal for single-user clients: one filter up to scale."""
    draw = np.random.default_rng(seed)
    popularity = min(popularity, n)
    pattern = draw.choice(n, popularity, replace=False)
    rows = np.zeros((n, n), int)
    for user in range(n):
        rows[user, (pattern + user) % n] = 1  # every item falls to as many users
    rows = rows[draw.permutation(n)][:, draw.permutation(n)]
    world, block = world_of(rows)
    method = find("fedcia")(build(find("fedcia").Settings, {"alpha": 0.0}, "fedcia"))
    ideal = rows.T @ (rows / rows.sum(1)[:, None]) / popularity  # D_i^-1/2 A' D_u^-1 A D_i^-1/2 (Eq. 1)
    np.testing.assert_allclose(one_round(method, world, block).whole, ideal * popularity / n, atol=1e-6)


def test_theorem_1_needs_equal_popularity() -> None:
    rows = np.array([[1, 1, 0], [1, 0, 1], [1, 0, 0]])
    world, block = world_of(rows)
    method = find("fedcia")(build(find("fedcia").Settings, {"alpha": 0.0}, "fedcia"))
    found = one_round(method, world, block).whole
    degrees = rows.sum(0)
    ideal = rows.T @ (rows / rows.sum(1)[:, None]) / np.sqrt(np.outer(degrees, degrees))
    assert not np.allclose(found / found.max(), ideal / ideal.max(), atol=0.05)


def test_gfcf_scores_with_its_own_and_the_global_filter(demo: Interactions) -> None:
    sim = simulator("fedcia", partition(demo, 6), beta=7.0)
    run(sim, 1)
    block, client = sim.people.block, 2
    users = np.arange(block.user_start[client], block.user_start[client + 1])
    method: Any = sim.method
    own = list(method.exchange.filters(block))[client]
    whole = np.zeros((demo.n_items, demo.n_items))
    whole[own.items] = own.rows(demo.n_items)
    wanted = matrix(block.train.take(users), demo.n_items) @ (whole + 7.0 * sim.server.whole)
    np.testing.assert_allclose(sim.scores(np.array([client])), wanted, rtol=1e-3, atol=1e-3)


def test_gfcf_over_several_rounds_is_the_mean_over_who_took_part(demo: Interactions) -> None:
    once, twice = (simulator("fedcia", partition(demo, 6)) for _ in range(2))
    everyone = np.arange(6)
    once.round(1, everyone, everyone, False)
    twice.round(1, everyone[:2], everyone[:2], False)
    twice.round(2, everyone[2:], everyone[2:], False)
    np.testing.assert_allclose(once.server.whole, twice.server.whole, atol=1e-5)


def test_the_normalised_filter_is_gfcf_of_the_whole_graph_up_to_its_item_weights() -> None:
    """One user a client: F_agg is sum_u 1 1' / |I_u|, D its diagonal, and the rest is GF-CF by hand."""
    rows = (np.random.default_rng(4).random((9, 7)) < 0.5).astype(int)
    rows[:, 0] |= rows.sum(1) == 0
    world, block = world_of(rows)
    given = {"alpha": 0.7, "k": 2, "global_filter": "normalised"}
    method: Any = find("fedcia")(build(find("fedcia").Settings, given, "fedcia"))
    server = one_round(method, world, block)
    together = rows.T @ (rows / rows.sum(1)[:, None])
    root = np.sqrt(np.diag(together))
    linear = together / np.outer(root, root)
    low = np.linalg.eigh(linear)[1][:, -2:]
    wanted = linear / np.linalg.eigvalsh(linear)[-1] + 0.7 * (low / root[:, None]) @ (low * root[:, None]).T
    np.testing.assert_allclose(method.download(server, block.clients).whole, wanted, atol=1e-5)
    assert not np.allclose(server.whole, wanted, atol=0.05)  # the mean itself goes on as the paper has it


def test_the_normalised_filter_is_the_same_in_factors(demo: Interactions) -> None:
    whole, thin = (
        simulator("fedcia", partition(demo, 6), global_filter="normalised", form=form, rank=demo.n_items, k=4)
        for form in ("full", "truncated")
    )
    run(whole, 1), run(thin, 1)
    np.testing.assert_allclose(all_scores(whole), all_scores(thin), rtol=1e-2, atol=2e-3)


def test_an_item_whose_weight_noise_made_negative_is_left_out() -> None:
    from fedrec.methods.fedcia.normalised import whole_filter

    mean = np.diag([1.0, 0.5, -0.001]).astype(np.float32)
    found = whole_filter(mean, 1, 1.0)
    assert np.isfinite(found).all()
    assert not found[2].any()


VARIANTS = [
    {"backbone": "gfcf"},
    {"backbone": "gfcf", "global_filter": "normalised"},
    {"backbone": "gfcf", "form": "truncated", "rank": 5},
    {"backbone": "mf", "form": "truncated", "rank": 5},
    {"backbone": "mf", "align": "gradient", "align_steps": 5},
    {"backbone": "mf", "align": "gradient", "align_steps": 5, "form": "truncated", "rank": 5},
    {"backbone": "mlp"},
    {"backbone": "lightgcn"},
    {"backbone": "lightgcn", "align": "none"},
    {"backbone": "mf", "mixed": "dims"},
    {"backbone": "mf", "mixed": "architectures"},
    {"backbone": "mf", "mixed": "dims", "aggregate": "within"},
    {"backbone": "mf", "mixed": "architectures", "aggregate": "within", "noise": 0.001},
]


@pytest.mark.parametrize("variant", VARIANTS, ids=lambda v: "-".join(str(x) for x in v.values()))
def test_every_variant_keeps_the_laws_of_blocks_and_wire(demo: Interactions, variant: dict[str, Any]) -> None:
    chosen: dict[str, Any] = {} if variant["backbone"] == "gfcf" else {"dim": 8, "lr": 0.05, "init_scale": 0.1}
    whole, single = (simulator("fedcia", partition(demo, 6), block_clients=n, **chosen, **variant) for n in (6, 1))
    one, other = run(whole, 2), run(single, 2)
    left, right = flatten(whole.snapshot())[0], flatten(single.snapshot())[0]
    for name in left:
        np.testing.assert_allclose(left[name], right[name], rtol=2e-3, atol=2e-4, err_msg=name)
    assert one.records[-1].test == pytest.approx(other.records[-1].test, abs=0.02)
    block = whole.people.block
    download = whole.method.download(whole.server, block.clients)
    upload = whole.method.local_update(whole.private, download, block, Keys(0, 3)).upload
    for kind, message in ((whole.method.Upload, upload), (whole.method.Download, download)):
        back = wire.decode(kind, wire.encode(message, wire.Form("rows")))
        arrays, again = flatten(message)[0], flatten(back)[0]
        assert set(arrays) == set(again)
        for name in arrays:
            np.testing.assert_allclose(arrays[name], again[name], rtol=1e-6, err_msg=name)


@pytest.mark.parametrize("backbone", ["mf", "lightgcn"])
def test_without_alignment_nobody_sends_or_learns_from_anybody(demo: Interactions, backbone: str) -> None:
    chosen: dict[str, Any] = {"backbone": backbone, "align": "none", "dim": 8, "lr": 0.05}
    sim = simulator("fedcia", partition(demo, 6), **chosen)
    progress = run(sim, 2)
    assert progress.records[-1].bytes["upload"] == 0
    block = sim.people.block.take(np.array([1]))  # a world in which only the second client exists
    alone = sim.method.start_clients(sim.people.world, block, Keys(0, 0))
    for number in (1, 2):
        download = sim.method.download(sim.method.start_server(sim.people.world, Keys(0, 0)), block.clients)
        alone = sim.method.local_update(alone, download, block, Keys(0, number)).private
    np.testing.assert_allclose(alone.tables[0], sim.private.tables[1], rtol=1e-3, atol=1e-4)


def test_mixed_dimensions_stay_within_each_clients_width(demo: Interactions) -> None:
    from fedrec.methods.fedcia.models import width

    sim = simulator("fedcia", partition(demo, 20), backbone="mf", mixed="dims", dim=8, lr=0.05)
    run(sim, 3)
    method: Any = sim.method
    widths = [width(method.exchange.settings, sim.people.block, client) for client in range(20)]
    assert set(widths) == {2, 4, 8}
    for client, own in enumerate(widths):
        assert (sim.private.tables[client, :, own:] == 0).all()
        assert (sim.private.tables[client, :, :own] != 0).any(0).all()


def test_a_truncated_upload_costs_fewer_bytes_and_ranks_alike(demo: Interactions) -> None:
    whole, thin = (simulator("fedcia", partition(demo, 6), form=form, rank=16) for form in ("full", "truncated"))
    full, cut = run(whole, 1).records[0], run(thin, 1).records[0]
    assert full.bytes["upload"] == 4 * demo.n_items**2
    assert cut.bytes["upload"] == 2 * 4 * 16 * demo.n_items
    assert full.loss == 0 < cut.loss < 0.5  # the share of the norm that is lost
    assert there(cut.test)["HR@10/99"] > there(full.test)["HR@10/99"] - 0.1


@pytest.mark.parametrize("backbone", ["gfcf", "mf"])
def test_a_large_catalogue_never_builds_items_by_items(backbone: str) -> None:
    draw = np.random.default_rng(0)
    rows = np.zeros((8, 20_000), np.int8)
    for user in range(8):
        rows[user, draw.choice(20_000, 40, replace=False)] = 1
    world, block = world_of(rows, 4)
    own = {"backbone": backbone, "rank": 8} | ({"dim": 8} if backbone == "mf" else {})
    method = find("fedcia")(build(find("fedcia").Settings, own, "fedcia"))
    one_round(method, *world_of(rows[:, :9000], 4))  # compiles kernels, loads libraries
    tracemalloc.start()
    server = one_round(method, world, block)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert server.left.shape[0] == 20_000
    assert peak < 100e6  # items by items would be 1.6 GB


# -- lightgcn


def test_graph_training_is_autograd_with_torchs_adam() -> None:
    import torch

    from fedrec.backbones.lightgcn import smoothed
    from fedrec.learn.samples import draw as draw_samples
    from fedrec.learn.shuffle import epoch_key, order
    from fedrec.learn.torch.graphs import train_graphs
    from fedrec.methods.references.lightgcn import LightGcnSettings

    rng = np.random.default_rng(5)
    rows = (rng.random((7, 12)) < 0.3).astype(int)
    rows[:, 0] |= rows.sum(1) == 0
    _, block = world_of(rows, 3)
    users, table = (rng.standard_normal((n, 4)).astype(np.float32) for n in (7, 12))
    chosen = LightGcnSettings(dim=4, epochs=3, batch_size=5, lr=0.05, weight_decay=0.01)
    draws, orders = keyed.keys_of("abc"), keyed.keys_of("def")
    found = train_graphs(block, users, table, chosen, 2, 2, draws, orders)
    samples = draw_samples(block, 2, draws, "numpy", "bpr")
    for client in range(3):
        mine = np.arange(block.user_start[client], block.user_start[client + 1])
        ids = samples.rows_ids[samples.rows_start[client] : samples.rows_start[client + 1]]
        own = rows[mine].astype(float)
        degrees = own.sum(0)
        normal = own / np.sqrt(own.sum(1))[:, None]
        normal = normal * np.divide(1, np.sqrt(degrees), out=np.zeros(12), where=degrees > 0)
        graph = torch.tensor(normal, dtype=torch.float32)
        people, items = (torch.tensor(x, requires_grad=True) for x in (users[mine], table))
        adam = torch.optim.Adam([people, items], lr=0.05)
        at = slice(samples.start[client], samples.start[client + 1])
        who = samples.user[at] - mine[0]
        good, bad = ids[samples.row[at]], ids[samples.negative[at]]
        for epoch in range(3):
            shuffled = order(len(who), epoch_key(int(orders[client]), epoch))
            for first in range(0, len(who), 5):
                b = shuffled[first : first + 5]
                u, i, su, si = people, items, people, items
                for _ in range(2):
                    u, i = graph @ i, graph.T @ u
                    su, si = su + u, si + i
                su, si = su / 3, si / 3
                gap = (su[who[b]] * (si[good[b]] - si[bad[b]])).sum(1)
                sizes = people[who[b]].square().sum() + items[good[b]].square().sum() + items[bad[b]].square().sum()
                loss = torch.nn.functional.softplus(-gap).mean() + 0.005 * sizes / len(b)
                adam.zero_grad()
                torch.autograd.backward(loss)
                adam.step()
        np.testing.assert_allclose(found.users[mine], people.detach().numpy(), atol=2e-4)
        moved = table.copy()
        own_rows = slice(found.rows.start[client], found.rows.start[client + 1])
        moved[found.rows.ids[own_rows]] += found.rows.values[own_rows]
        np.testing.assert_allclose(moved, items.detach().numpy(), atol=2e-4)
        smooth_u, smooth_i = smoothed(block.train.take(mine), people.detach().numpy(), moved, 2)
        u, i = people.detach(), torch.from_numpy(moved)
        su, si = u + graph @ i + graph @ (graph.T @ u), i + graph.T @ u + graph.T @ (graph @ i)
        np.testing.assert_allclose(smooth_u, su.numpy() / 3, atol=1e-4)
        np.testing.assert_allclose(smooth_i, si.numpy() / 3, atol=1e-4)


@pytest.mark.parametrize("personal", [False, True])
def test_graph_scores_are_those_of_each_clients_whole_convolved_table(personal: bool) -> None:
    from fedrec.backbones.lightgcn import graph_scores, smoothed
    from fedrec.backbones.tables import ItemTable
    from fedrec.core.messages import Rows

    rng = np.random.default_rng(9)
    lists = (rng.random((7, 12)) < 0.3).astype(int)
    lists[:, 0] |= lists.sum(1) == 0
    _, block = world_of(lists, 3)
    users, table = (rng.standard_normal((n, 4)).astype(np.float32) for n in (7, 12))
    changes = None
    if personal:  # rows that some clients have moved, own items and others among them
        ids = np.array([0, 3, 11, 0, 5], np.int32)
        changes = Rows(np.array([0, 3, 3, 5]), ids, rng.standard_normal((5, 4)).astype(np.float32), 12)
    held = ItemTable(table, changes)
    found = graph_scores(block, users, held, 2)
    for client in range(3):
        mine = np.arange(block.user_start[client], block.user_start[client + 1])
        people, items = smoothed(block.train.take(mine), users[mine], held.of(client), 2)
        np.testing.assert_allclose(found[mine], people @ items.T, atol=1e-5)


def test_what_needs_one_round_says_so() -> None:
    from fedrec.methods.fedcia.method import FedCia
    from fedrec.methods.fedcia.settings import FedCiaSettings
    from fedrec.methods.fedease import FedEase

    assert FedEase().settled_after() == 1
    assert FedCia().settled_after() == 1
    assert FedCia(FedCiaSettings(noise=0.001)).settled_after() is None  # fresh noise: more rounds average it out
    assert FedCia(FedCiaSettings(backbone="mf")).settled_after() is None
