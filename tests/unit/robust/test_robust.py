"""Defences against values computed by hand, and their law: off the active range they change nothing, bit for bit."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from itertools import pairwise
from typing import Any

import numpy as np
import pytest

from fedrec import keyed
from fedrec.core.messages import Array, Float32, Limit, Rows, Upload, per_client
from fedrec.core.method import Card, Keys, Reply
from fedrec.core.state import flatten
from fedrec.data.ragged import offsets
from fedrec.errors import BadInput
from fedrec.laws.small_runs import plan, run, simulator, world
from fedrec.methods.registry import find
from fedrec.robust import centre, krum
from fedrec.robust.defence import defence
from fedrec.robust.fields import View
from fedrec.robust.median import lower_median
from fedrec.robust.spool import spooled

N_ITEMS, CLIENTS = 5, 11


@dataclass(frozen=True)
class Sent(Upload):
    rows: Rows = per_client()
    networks: dict[str, Array] = per_client()
    sizes: Array = per_client(protect=False, low=0, high=Limit.OWNED)


@dataclass
class Sum:
    """A method that only adds up, and remembers what it was given."""

    name: str = "sum"
    card: Card = Card("", "", "", "", sum_suffices=True)
    seen: list[Reply[Any]] = field(default_factory=list)

    def whole_values(self, server: Any, clients: Any) -> dict[str, Any]:
        return {}

    def aggregate(self, server: Any, replies: Iterator[Reply[Any]], keys: Keys) -> Any:
        self.seen = list(replies)
        tables = np.concatenate([reply.upload.rows.dense() for reply in self.seen])
        return tables.sum(0), np.concatenate([reply.upload.sizes for reply in self.seen])


def uploads(tables: Any, sizes: Any = None, blocks: int = 1) -> list[Reply[Any]]:
    """Whole tables ``[clients, items, width]`` as rows that are not zero, in so many replies."""
    tables = np.asarray(tables, np.float32)
    sizes = np.ones(len(tables), np.int64) if sizes is None else np.asarray(sizes)
    found = []
    for some in np.array_split(np.arange(len(tables)), blocks):
        client, item = np.nonzero(tables[some].any(2))
        start = offsets(np.bincount(client, minlength=len(some)))
        rows = Rows(start, item.astype(np.int32), tables[some][client, item], tables.shape[1])
        found.append(Reply(some, Sent(rows, {"out": np.zeros((len(some), 2), np.float32)}, sizes[some])))
    return found


def folded(names: str, replies: list[Reply[Any]], method: Any = None, **more: Any) -> Any:
    method = method or Sum()
    users = np.ones(sum(len(reply.clients) for reply in replies), np.int64)
    return defence(names, **more).fold(method, None, iter(replies), Keys(0, 1), users, N_ITEMS)


def lone(norms: list[float], item: int = 0, width: int = 2) -> Float32:
    """Clients that change one row by so much along (3, 4) / 5."""
    tables = np.zeros((len(norms), N_ITEMS, width), np.float32)
    tables[:, item] = np.array(norms)[:, None] * np.array([0.6, 0.8])
    return tables


NORMS = [1.0, 1.0, 2.0, 2.0, 2.0, 3.0, 4.0, 4.0, 5.0, 5.0, 1000.0]  # the median is 3


def test_bound_scales_to_the_median_norm_and_caps_sizes() -> None:
    total, sizes = folded("bound", uploads(lone(NORMS), [10] * 10 + [10**9]))
    assert total[0] == pytest.approx(np.array([0.6, 0.8]) * (1 + 1 + 2 + 2 + 2 + 6 * 3), rel=1e-5)
    assert sizes.tolist() == [10] * 11


def test_bound_measures_all_fields_together() -> None:
    replies = uploads(lone([3.0] * 10 + [3.0]))
    layers = np.zeros((11, 2), np.float32)
    layers[10] = [0.0, 4.0]  # 3 and 4: together 5
    replies = [replace(replies[0], upload=replace(replies[0].upload, networks={"out": layers}))]
    method = Sum()
    folded("bound", replies, method)
    assert method.seen[0].upload.networks["out"][10] == pytest.approx([0.0, 4 * 3 / 5])


def test_what_is_not_finite_counts_as_nothing() -> None:
    tables = lone(NORMS)
    tables[10] = np.inf
    total, _ = folded("bound", uploads(tables))
    assert np.isfinite(total).all()
    assert total[1:].max() == 0


def test_those_who_send_nothing_do_not_lower_the_bound() -> None:
    total, _ = folded("bound", uploads(lone([0.0] * 20 + [2.0] * 3)))
    assert total[0] == pytest.approx([3.6, 4.8])


def test_a_single_row_is_held_to_the_usual_row() -> None:
    tables = np.zeros((11, N_ITEMS, 2), np.float32)
    tables[:10, 1:] = [0.6, 0.8]  # honest: four rows of length 1
    tables[10, 0] = [0.0, 2.0]  # as large as all of an honest change, on one row
    bound, _ = folded("bound", uploads(tables))
    rows, _ = folded("bound+rows", uploads(tables))
    assert bound[0] == pytest.approx([0.0, 2.0])
    assert rows[0] == pytest.approx([0.0, 1.0])
    assert (rows[1:] == bound[1:]).all()


def test_who_claims_to_have_everything_weighs_no_more_than_a_few() -> None:
    honest = list(range(1, 40))
    _, sizes = folded("rows", uploads(lone([1.0] * 40), [*honest, 10**6]))
    assert sizes.tolist() == [*honest, 3 * 38]  # 38 is exceeded by one in twenty
    unlike = [1] * 38 + [3 * 38, 38]  # an honest client with much stays as it is
    assert folded("rows", uploads(lone([1.0] * 40), unlike))[1].tolist()[:38] == [1] * 38


def test_a_dishonest_client_moves_no_row_that_few_have_changed() -> None:
    for others in range(2, 12):
        tables = np.zeros((40, N_ITEMS, 2), np.float32)
        tables[:others, 1] = [0.6, 0.8]
        tables[39, 1] = [1e6, 1e6]
        total, _ = folded("trimmed", uploads(tables), share=0.1)
        assert total[1].max() < 40, others


def test_median_and_trimmed_mean_by_hand() -> None:
    tables = np.zeros((10, N_ITEMS, 2), np.float32)
    tables[:, 0] = np.arange(1, 11)[:, None] * [1, 10]
    tables[:5, 3] = [[1, 1], [1, 1], [2, 2], [9, 9], [999, 999]]
    total, _ = folded("median", uploads(tables))
    assert total[0] == pytest.approx([55, 550])  # ten clients, median 5.5
    assert total[3] == pytest.approx([10, 10])  # five of ten touched it: 5 x 2
    total, _ = folded("trimmed", uploads(tables, blocks=3), share=0.2)
    assert total[0] == pytest.approx([55, 550])
    assert total[3] == pytest.approx([5 * 4, 5 * 4])  # 1, 2 and 9


def test_the_middle_is_found_in_pieces(monkeypatch: pytest.MonkeyPatch) -> None:
    tables = np.random.default_rng(0).normal(size=(12, N_ITEMS, 2))
    whole, _ = folded("median", uploads(tables))
    monkeypatch.setattr(centre, "AT_ONCE", 3)
    assert np.array_equal(folded("median", uploads(tables, blocks=4))[0], whole)


def test_a_centre_needs_a_sum() -> None:
    method = Sum(card=Card("", "", "", "", sum_suffices=False))
    with pytest.raises(BadInput, match="use bound, rows or krum"):
        folded("median", uploads(lone(NORMS)), method)


@pytest.mark.parametrize("places", [krum.PLACES, 7])
def test_krum_leaves_out_who_is_far_from_the_others(places: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(krum, "PLACES", places)  # 7: fewer than an upload's coordinates
    tables = lone([1.0 + 0.01 * c for c in range(12)])
    tables[[3, 8]] *= -40
    method = Sum()
    folded("krum", uploads(tables, blocks=5), method, share=0.16)
    left = np.concatenate([reply.clients for reply in method.seen])
    assert left.tolist() == [0, 1, 2, 4, 5, 6, 7, 9, 10, 11]


def test_a_change_that_cancels_in_krums_sketch_is_seen_all_the_same() -> None:
    """The signs are drawn from the run's seed, which every node has."""
    width = krum.PLACES
    tables = np.random.default_rng(0).normal(size=(20, N_ITEMS, width)).astype(np.float32)
    drawn = keyed.streams(keyed.stream(0, "krum"), np.arange(N_ITEMS * width, dtype=np.uint64))
    place, sign = drawn % np.uint64(krum.PLACES), 1 - 2 * (drawn >> np.uint64(63)).astype(np.int64)
    order = np.argsort(place, kind="stable")
    one, other = next(pair for pair in pairwise(order) if place[pair[0]] == place[pair[1]])
    hostile = tables[7].reshape(-1)  # a view
    hostile[one] += 1e4
    hostile[other] -= 1e4 * sign[one] * sign[other]
    method = Sum()
    folded("krum", uploads(tables), method, share=0.05)
    assert 7 not in np.concatenate([reply.clients for reply in method.seen])


def test_krum_scores_by_hand() -> None:
    points = np.array([[0.0], [1.0], [2.0], [10.0], [11.0]])
    # n = 5, f = 1: the two nearest; scores 1+4, 1+1, 1+4, 1+64, 1+81: the last is left out
    squares = points[:, 0] ** 2
    assert krum.Krum(0.2).chosen(points, squares, np.arange(5), Keys(0, 1)).tolist() == [0, 1, 2, 3]


def test_nothing_is_done_for_a_handful_of_clients() -> None:
    total, _ = folded("bound+rows", uploads(lone([1.0, 1.0, 500.0])))
    assert total[0] == pytest.approx([0.6 * 502, 0.8 * 502])


def test_the_median_is_exact_however_the_numbers_are_cut() -> None:
    drawn = np.random.default_rng(1).lognormal(sigma=3, size=1001).astype(np.float32)
    for parts in (1, 7, 1001):
        found = lower_median(lambda parts=parts: iter(np.array_split(drawn, parts)))  # type: ignore[misc]
        assert found == np.median(drawn)
    assert lower_median(lambda: [np.array([0.0, 4.0, 1.0, np.nan, 2.0, 3.0])]) == 2.0
    assert lower_median(lambda: [np.zeros(3)]) == 0.0


def test_uploads_beyond_memory_lie_on_disk_and_fold_the_same() -> None:
    replies = uploads(lone(NORMS), blocks=3)
    kept = spooled(iter(replies), memory_mb=0)
    assert all(isinstance(reply.upload.rows.values, np.memmap) for reply in kept)
    here, there = (folded("bound", uploads(lone(NORMS), blocks=3), memory_mb=size) for size in (100, 0))
    assert np.array_equal(here[0], there[0])


@pytest.mark.parametrize("names", ["bond", "bound+none", ""])
def test_unknown_pieces_are_bad_input(names: str) -> None:
    with pytest.raises(BadInput, match="robust"):
        defence(names)


METHODS = ["fedavg", "fedca", "fedspectral", "fedease", "feddae"]
"""One of each kind of upload: changes with sizes, whole tables, sums, pairs, factors."""


def after(method: str, names: str, factor: float, blocks: int | None = None) -> dict[str, Any]:
    sim = simulator(method, world("tiny"), block_clients=blocks)
    sim.robust = defence(names, factor)
    run(sim, plan(2, every=2))
    return flatten(sim.server)[0]


@pytest.mark.parametrize("method", METHODS)
def test_off_its_active_range_a_bound_changes_nothing(method: str) -> None:
    plain, guarded = after(method, "none", 1), after(method, "bound+rows", 1e6)
    assert all(np.array_equal(plain[name], guarded[name]) for name in plain)


@pytest.mark.parametrize("method", METHODS)
def test_an_active_bound_does_not_depend_on_blocks(method: str) -> None:
    whole, apart, plain = after(method, "bound+rows", 1), after(method, "bound+rows", 1, 7), after(method, "none", 1)
    assert all(np.allclose(whole[name], apart[name], rtol=1e-5, atol=1e-6) for name in whole)
    assert any(not np.array_equal(whole[name], plain[name]) for name in whole)


def test_a_factored_gradient_is_measured_as_the_whole_one() -> None:
    """feddae sends factors: their product counts, not how large one of them is."""
    sims = {form: simulator("feddae", world("tiny"), settings={"gradients": form}) for form in ("factored", "dense")}
    found = {}
    for form, sim in sims.items():
        private, download, block = sim.at_home(np.arange(12))
        upload = sim.method.local_update(private, download, block, Keys(3, 1)).upload
        view = View(sim.method, sim.server, sim.users, block.n_items)
        found[form] = view.norms(Reply(block.clients, upload))
        half = view.scaled(Reply(block.clients, upload), np.full(12, 0.5))
        assert view.norms(half) == pytest.approx(found[form] / 2, rel=1e-4)
    assert found["factored"] == pytest.approx(found["dense"], rel=1e-4)
    assert find("feddae").card.sum_suffices is False
