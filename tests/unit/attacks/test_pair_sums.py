"""Whole histories out of sums of pairs with a known answer."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from fedrec.attacks.asked_columns import AskedColumns
from fedrec.attacks.contract import Exchanged, Float64, Seen, Vector
from fedrec.attacks.pair_sums import PairSums, histories_in
from fedrec.core.block import World
from fedrec.maths.packed import pack

M = 8
FIRST, SECOND, THIRD = [0, 2, 5], [1, 2, 4], [2, 4, 6, 7]
USERS = (FIRST, SECOND, THIRD, [2, 4], [2, 4])
"""0 and 5 have one owner, so have 1, 6 and 7; all else is shared. The last two are alike: seen when others are gone."""


def sum_of(histories: Sequence[Sequence[int]] = USERS, weights: Sequence[float] | None = None) -> Float64:
    each = np.zeros((len(histories), M))
    for row, items in zip(each, histories, strict=True):
        row[items] = 1
    return np.asarray((each * np.array(weights or [1.0] * len(each))[:, None]).T @ each)


def named(pairs: Float64, after: int | None = None) -> list[list[int]]:
    return sorted(h.items.tolist() for h in histories_in(pairs) if after is None or h.after == after)


@pytest.mark.parametrize("weights", [None, [0.5, 0.2, 0.1, 0.7, 0.3]])
def test_a_row_of_one_owner_is_a_history_and_taken_off_shows_others(weights: list[float] | None) -> None:
    pairs = sum_of(weights=weights)
    assert named(pairs, 0) == sorted([FIRST, SECOND, THIRD])
    assert named(pairs) == sorted([FIRST, SECOND, THIRD, [2, 4]])


def test_rows_of_owners_that_differ_name_nobody() -> None:
    assert named(sum_of([[0, 1], [0, 2], [1, 2]])) == []
    assert named(np.zeros((M, M))) == []


def test_pairs_that_count_less_with_distance_show_who_is_alone_all_the_same() -> None:
    """fedease's pair_span: each item counts one for itself, less with others."""
    apart = np.exp(-np.abs(np.subtract.outer(np.arange(3), np.arange(3))) / 2.0)
    pairs = np.zeros((M, M))
    for items in (FIRST, SECOND):
        pairs[np.ix_(items, items)] += apart
    assert named(pairs) == sorted([FIRST, FIRST, SECOND, SECOND])  # by either item that one alone has


def test_noise_that_leaves_counts_in_sight_hides_nothing_and_more_hides_all() -> None:
    draws = np.random.default_rng(0).normal(size=(M, M))
    draws = np.triu(draws) + np.triu(draws, 1).T
    assert named(sum_of() + 0.05 * draws) == named(sum_of())
    assert named(sum_of() + 5 * draws) == []


def seen(uploads: Sequence[Any], downloads: Sequence[Any] | None = None, method: Any = None) -> Seen:
    given = downloads or [SimpleNamespace()] * len(uploads)
    rounds = [Exchanged(n + 1, d, u) for n, (u, d) in enumerate(zip(uploads, given, strict=True))]
    known: Any = method or SimpleNamespace(settings=SimpleNamespace())
    return Seen(known, World("known", M, 3, 3), 0, 1, tuple(rounds))


def packed(pairs: Float64) -> Vector:
    return Vector({"pairs": pack(pairs)[None, :, None]})


def test_every_round_is_read_and_messages_without_pairs_are_not() -> None:
    both = seen([packed(sum_of([FIRST, SECOND])), packed(sum_of([THIRD]))])
    (found,) = PairSums().read([both])
    assert found is not None
    assert {tuple(h.items.tolist()) for h in found.histories or ()} == {tuple(FIRST), tuple(SECOND), tuple(THIRD)}
    assert PairSums().read([seen([Vector({"table": np.ones((1, M, 3))})])]) == [None]


@dataclass(frozen=True)
class Applied:
    """What clients apply, and the item counts."""

    sent: Any
    degrees: Any


class Applies(SimpleNamespace):
    settings = SimpleNamespace()

    def asked(self, download: Applied) -> Any:
        return download.sent


def test_a_server_that_asks_for_the_rarest_items_reads_their_owners_histories() -> None:
    attack, method, pairs = AskedColumns(), Applies(), sum_of(weights=[1 / 3, 1 / 3, 1 / 4, 1 / 2, 1 / 2])
    counts = np.array([sum(item in items for items in USERS) for item in range(M)], float)
    start = Applied(np.random.default_rng(0).normal(size=(M, 3)), np.zeros(M))
    sent = [attack.asks(method, replace(start, degrees=d), n + 1) for n, d in enumerate((np.zeros(M), counts, counts))]
    assert sent[0].sent is start.sent  # of the first round nothing is known
    answers = [Vector({"table": np.hstack([pairs @ one.sent, counts[:, None]])[None]}) for one in sent]
    (found,) = attack.read([seen(answers, sent, method)])
    assert found is not None
    assert {tuple(h.items.tolist()) for h in found.histories or ()} == {tuple(FIRST), tuple(SECOND), tuple(THIRD)}
    assert not attack.suits(SimpleNamespace())
