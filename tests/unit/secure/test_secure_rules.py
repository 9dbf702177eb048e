"""Neighbour graphs and the numbers that go with them."""

from __future__ import annotations

import itertools
import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

from fedrec.errors import BadInput
from fedrec.secure.graph import circle, committee, fewest_in_a_row, neighbour_table
from fedrec.secure.rules import (
    Rules,
    Server,
    colluding_members,
    failure,
    gaps,
    insecurity,
    more_than,
    neighbourhood,
)


def parts(table: NDArray[np.int64], left: NDArray[np.bool_]) -> int:
    """How many parts the members that are left fall into."""
    unseen, count = set(np.flatnonzero(left).tolist()), 0
    while unseen:
        count += 1
        todo = [unseen.pop()]
        while todo:
            near = set(table[todo.pop()].tolist()) & unseen
            unseen -= near
            todo += near
    return count


@given(st.integers(3, 60), st.integers(1, 30), st.integers(0, 99))
def test_every_member_has_k_neighbours_and_is_theirs(n: int, half: int, seed: int) -> None:
    k = min(2 * half, n - 1)
    table = neighbour_table(circle(bytes([seed]) * 32, n), k)
    assert table.shape == (n, k)
    for member, near in enumerate(table):
        assert len(set(near.tolist()) - {member}) == k
        assert all(member in table[other] for other in near)
        assert (np.diff(near) > 0).all()


@given(st.integers(8, 14), st.integers(1, 3), st.data())
def test_a_window_that_is_kept_keeps_the_circle_in_one_part(n: int, half: int, data: st.DataObject) -> None:
    k = 2 * half
    order = circle(bytes(32), n)
    left = np.array([data.draw(st.booleans()) for _ in range(n)])
    found = fewest_in_a_row(order, k, left)
    around = left[order]
    assert found == min(sum(around[(start + step) % n] for step in range(half)) for start in range(n))
    if found >= 1:
        assert parts(neighbour_table(order, k), left) == 1


def test_a_circle_falls_apart_only_at_two_gaps() -> None:
    """All ways to take members away from a circle of 10 with 4 neighbours each."""
    order = circle(bytes(32), 10)
    table = neighbour_table(order, 4)
    for flags in itertools.product([False, True], repeat=10):
        around = np.array(flags)
        left = np.empty(10, bool)
        left[order] = around
        if parts(table, left) > 1:
            empty = [not around[place] and not around[(place + 1) % 10] for place in range(10)]
            first = empty.index(True)
            apart = [place for place in range(10) if empty[place] and (place - first) % 10 not in (0, 1, 9)]
            assert apart


@pytest.mark.parametrize("server", ["curious", "active"])
@pytest.mark.parametrize("n", [3, 4, 5, 10, 37, 100, 1000])
def test_rules_keep_what_they_promise(n: int, server: Server) -> None:
    hood = neighbourhood(n, 0.1, 0.05, server)
    assert hood.insecure <= 2.0**-40
    assert hood.failing <= 2.0**-20
    rules = hood.rules
    assert insecurity(n, rules, 0.05, server) == hood.insecure
    assert failure(n, rules, math.floor(0.1 * n)) == hood.failing
    assert 2 <= rules.threshold <= rules.neighbours < n
    assert rules.threshold > colluding_members(n, 0.05) or rules.neighbours < n - 1
    if server == "active":
        assert 2 * rules.quorum > rules.committee


def test_a_cohort_of_a_thousand_needs_tens_of_neighbours() -> None:
    curious, active = neighbourhood(1000, server="curious").rules, neighbourhood(1000).rules
    assert (curious.neighbours, curious.threshold) == (38, 19)
    assert (active.neighbours, active.threshold) == (74, 25)
    assert (active.window, active.committee, active.quorum) == (19, 58, 39)


def test_tails_are_those_of_counting() -> None:
    """Draw 4 of 9 of which 3 are marked: more than 1 marked in 45 + 6 of 126 ways."""
    assert more_than(9, 3, 4, 1) == pytest.approx((3 * 15 + 6) / 126)
    assert more_than(9, 3, 4, 3) == 0.0
    assert more_than(9, 3, 9, 2) == 1.0
    assert more_than(9, 3, 4, -1) == 1.0


@settings(max_examples=3)
@given(st.integers(0, 10**6))
def test_the_bound_of_parts_holds_in_trials(seed: int) -> None:
    """20 members, 4 neighbours, 8 gone: how often the rest falls apart is below the bound."""
    rng, apart, trials = np.random.default_rng(seed), 0, 400
    table = neighbour_table(np.arange(20), 4)
    for _ in range(trials):
        left = np.ones(20, bool)
        left[rng.choice(20, 8, replace=False)] = False
        apart += parts(table, left) > 1
    assert apart / trials <= gaps(20, 4, 8)


def test_more_dropouts_or_more_collusion_need_more_neighbours() -> None:
    assert neighbourhood(500, 0.05, 0.05).rules.neighbours < neighbourhood(500, 0.2, 0.05).rules.neighbours
    assert neighbourhood(500, 0.05, 0.02).rules.neighbours < neighbourhood(500, 0.05, 0.1).rules.neighbours


@pytest.mark.parametrize(("n", "dropout", "colluding"), [(2, 0.1, 0.0), (4, 0.6, 0.3), (10, 1.0, 0.0), (10, 0.0, -0.1)])
def test_what_cannot_be_protected_is_bad_input(n: int, dropout: float, colluding: float) -> None:
    with pytest.raises(BadInput):
        neighbourhood(n, dropout, colluding)


def test_weaker_rules_are_less_secure() -> None:
    rules = neighbourhood(200).rules
    base = insecurity(200, rules, 0.05, "active")
    for name in ("threshold", "window", "quorum"):
        weaker = Rules(**{**vars(rules), name: getattr(rules, name) - 1})
        assert insecurity(200, weaker, 0.05, "active") > base


@given(st.integers(3, 100), st.integers(1, 100))
def test_a_committee_has_distinct_members(n: int, size: int) -> None:
    chosen = committee(bytes(32), np.arange(n), min(size, n))
    assert len(set(chosen.tolist())) == min(size, n)
    assert chosen.max() < n
