"""Cohorts and sums of sums; the simulator gives what the protocol gives, bytes included."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from secure_samples import Game, make_plan, make_values, names

from fedrec.errors import BadInput
from fedrec.secure.aggregator import SecureSum
from fedrec.secure.cohorts import assign, sum_of_sums
from fedrec.secure.course import Course
from fedrec.secure.failures import Refusal
from fedrec.secure.layout import Field, Layout
from fedrec.secure.messages import Kind
from fedrec.secure.plan import Plan
from fedrec.secure.ring import Integers
from fedrec.secure.rules import neighbourhood
from fedrec.secure.simulate import Cohort, Level


@given(st.integers(3, 400), st.integers(3, 120), st.integers(0, 5))
def test_everybody_is_in_one_cohort_and_none_is_small(n: int, size: int, seed: int) -> None:
    people = names(n)
    found = assign(people, seed, "run", 1, size)
    assert sorted(name for group in found.groups for name in group) == people
    assert found.smallest >= min(n, size)
    assert found.largest - found.smallest <= 1
    assert found == assign(people[::-1], seed, "run", 1, size)


@given(st.integers(3, 400), st.floats(0, 1), st.integers(3, 120), st.integers(0, 5))
def test_those_who_add_something_are_together(n: int, share: float, size: int, seed: int) -> None:
    """A few of them in each of many cohorts would hide each other nowhere, and every cohort would be skipped."""
    people = names(n)
    idle = set(people[: round(share * n)])
    adding = n - len(idle)
    found = assign(people, seed, "run", 1, size, idle)
    assert sorted(name for group in found.groups for name in group) == people
    assert found.smallest >= min(n, size)
    assert found.largest < 2 * size
    assert all(len(set(group) - idle) >= min(adding, size // 2) for group in found.groups if set(group) - idle)
    assert found == assign(people[::-1], seed, "run", 1, size, idle)


def test_cohorts_change_with_the_round_and_the_seed() -> None:
    people = names(60)
    first = assign(people, 0, "run", 1, 10)
    assert first != assign(people, 0, "run", 2, 10)
    assert first != assign(people, 1, "run", 1, 10)
    with pytest.raises(BadInput):
        assign(people[:2], 0, "run", 1)
    with pytest.raises(BadInput):
        assign(["a", "a", "b"], 0, "run", 1)


def simulated(plan: Plan, values: list[Integers], level: Level = "sums", **dropouts: Kind) -> SecureSum:
    cohort = Cohort(plan, {int(place[1:]): kind for place, kind in dropouts.items()}, level=level)
    for place in cohort.contributors.tolist():
        cohort.add(place, values[place])
    return cohort.finish().sum


def test_sums_of_sums_are_the_sum_of_all() -> None:
    people = names(45)
    layout = Layout((Field("table", (7,), 1.0),), summands=12)
    rng = np.random.default_rng(0)
    real = {name: rng.uniform(-1, 1, 7) for name in people}
    sums = []
    for cohort, group in enumerate(assign(people, 0, "run", 1, 11).groups):
        rules = neighbourhood(len(group), colluding=0.0).rules
        plan = Plan.of("run", 1, list(group), layout, rules, cohort=cohort)
        sums.append(simulated(plan, [layout.encode({"table": real[name]}) for name in plan.members], "masks"))
    total = sum_of_sums(sums)
    assert total.contributions == 45
    assert total.smallest == 11
    error = layout.scales["table"].error(45)
    np.testing.assert_allclose(total.fields["table"], sum(real.values()), atol=error)
    with pytest.raises(BadInput, match="two cohorts"):
        sum_of_sums([sums[0], sums[0]])
    with pytest.raises(BadInput, match="no sum"):
        sum_of_sums([])


def test_sums_of_other_rounds_or_layouts_do_not_add_up() -> None:
    plans = [make_plan(4, run="run"), make_plan(4, round=2), make_plan(4, length=6)]
    sums = [simulated(plan, make_values(plan)) for plan in plans]
    for other in sums[1:]:
        with pytest.raises(BadInput, match="do not add up"):
            sum_of_sums([sums[0], other])


def test_sums_of_sums_do_not_pass_64_bits() -> None:
    plan = make_plan(4)
    huge = [SecureSum(np.full(5, 2**61), (name,), plan) for name in "abcd"]
    assert sum_of_sums(huge[:1]).total[0] == 2**61
    with pytest.raises(BadInput, match="64 bits"):
        sum_of_sums(huge)


@given(st.data())
@settings(max_examples=25)
def test_all_levels_give_the_same_sum_and_bytes(data: st.DataObject) -> None:
    n = data.draw(st.integers(5, 11))
    k = data.draw(st.sampled_from([*range(4, n - 1, 2), n - 1]))
    plan = make_plan(n, k, 2, least_survivors=3, quorum=2)
    who = data.draw(st.lists(st.integers(0, n - 1), unique=True, max_size=2))
    dropouts = {place: data.draw(st.sampled_from(list(Kind))) for place in who}
    game = Game(plan, make_values(plan), dropouts)
    true = game.play()
    sent = sum(len(message) for _, _, message in game.transcript.sent)
    levels: list[Level] = ["protocol", "masks", "sums"]
    for level in levels:
        cohort = Cohort(plan, dropouts, level=level)
        for place in cohort.contributors.tolist():
            cohort.add(place, game.values[place])
        found = cohort.finish()
        np.testing.assert_array_equal(found.sum.total, true.total)
        assert found.sum.survivors == true.survivors
        assert found.received == sent == found.traffic.upload.sum()
    per_member = np.zeros((n, 6), np.int64)
    for kind, place, message in game.transcript.sent:
        per_member[place, kind + 1] += len(message)
    np.testing.assert_array_equal(per_member, found.traffic.upload)
    received = np.zeros((n, 6), np.int64)
    received[:, 0] = len(plan.to_bytes())
    silent = np.array([dropouts.get(place, 9) for place in range(n)])
    for kind, place, content in game.transcript.received:
        received[place, kind + 1] += len(content)
    for kind in Kind:  # what is sent to a member that has just fallen silent is sent all the same
        here = silent > kind
        np.testing.assert_array_equal(received[here, kind + 1], found.traffic.download[here, kind + 1])


def test_a_member_is_added_once_and_only_if_it_contributes() -> None:
    plan = make_plan(6)
    cohort = Cohort(plan, {2: Kind.INPUT})
    values = make_values(plan)
    cohort.add(0, values[0])
    for place in (0, 2):
        with pytest.raises(Refusal):
            cohort.add(place, values[place])
    with pytest.raises(Refusal, match="4 contributors"):
        cohort.finish()


def test_the_course_counts_secrets_to_restore() -> None:
    plan = make_plan(8, 7, 3, least_survivors=4)
    assert Course.of(plan, {0: Kind.SHARE}).restored == 0
    assert Course.of(plan, {0: Kind.INPUT}).restored == 0  # its neighbours reveal their masks with it
    assert Course.of(plan, {0: Kind.INPUT, 1: Kind.UNMASK}).restored == 2
    assert Course.of(plan, {0: Kind.CONFIRM, 1: Kind.UNMASK}).restored == 2
