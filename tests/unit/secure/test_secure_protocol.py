"""The secure sum is the plain sum, whoever drops out when; or there is none."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from secure_samples import Game, make_plan, make_values

from fedrec.secure.course import Course
from fedrec.secure.failures import TooFew
from fedrec.secure.messages import Kind
from fedrec.secure.ring import Bits


@st.composite
def cohorts(draw: st.DrawFn) -> tuple[Game, int]:
    """A cohort with any graph, any threshold and any dropouts."""
    n = draw(st.integers(4, 12))
    k = draw(st.sampled_from([*range(2, n - 1, 2), n - 1]))
    t = draw(st.integers(2, k))
    least = draw(st.integers(t + 1, n))
    window = draw(st.integers(0, k // 2)) if k < n - 1 else 0
    bits: Bits = draw(st.sampled_from([32, 64]))
    quorum = draw(st.integers(0, n))
    plan = make_plan(n, k, t, window=window, quorum=quorum, least_survivors=least, bits=bits)
    steps = st.sampled_from(list(Kind))
    dropouts = draw(st.dictionaries(st.integers(0, n - 1), steps, max_size=draw(st.integers(0, n))))
    seed = draw(st.integers(0, 9))
    return Game(plan, make_values(plan, seed), dropouts), n


@given(cohorts())
@settings(max_examples=60)
def test_the_sum_is_the_plain_sum_or_there_is_none(drawn: tuple[Game, int]) -> None:
    game, _ = drawn
    try:
        course = Course.of(game.plan, game.dropouts)
    except TooFew:
        with pytest.raises(TooFew):
            game.play()
        return
    result = game.play()
    places = [place for place in range(len(game.plan.members)) if game.dropouts.get(place, 9) > Kind.INPUT]
    assert set(course.survivors) <= set(places)
    assert result.survivors == tuple(game.plan.members[place] for place in course.survivors)
    np.testing.assert_array_equal(result.total, sum(game.values[place] for place in course.survivors))


@given(st.data())
@settings(max_examples=30)
def test_dropouts_within_the_allowance_are_survived_at_every_step(data: st.DataObject) -> None:
    n = data.draw(st.integers(5, 12))
    t = data.draw(st.integers(2, n - 2))
    plan = make_plan(n, n - 1, t, least_survivors=t + 1, quorum=t + 1)
    allowed = n - 1 - t
    who = data.draw(st.lists(st.integers(0, n - 1), unique=True, max_size=allowed))
    dropouts = {place: data.draw(st.sampled_from(list(Kind))) for place in who}
    game = Game(plan, make_values(plan), dropouts)
    result = game.play()
    staying = [place for place in range(n) if dropouts.get(place, 9) > Kind.INPUT]
    np.testing.assert_array_equal(result.total, sum(game.values[place] for place in staying))


@pytest.mark.parametrize("kind", list(Kind))
def test_below_the_threshold_it_fails_closed_at_every_step(kind: Kind) -> None:
    plan = make_plan(9, 8, 6, least_survivors=7, quorum=0)
    allowed = 2 if kind <= Kind.INPUT else 3  # later on only the threshold counts: 6 of 8 shares
    for gone in range(9):
        game = Game(plan, make_values(plan), dict.fromkeys(range(gone), kind))
        if gone <= allowed:
            assert len(game.play().survivors) == (9 if kind > Kind.INPUT else 9 - gone)
        else:
            with pytest.raises(TooFew):
                game.play()


def test_after_a_failure_a_new_attempt_with_fresh_keys_gives_the_sum() -> None:
    from secure_samples import directory, member

    plan = make_plan(6, 5, 4)
    members = [member(name, 6) for name in plan.members]
    first = [one.join(plan).advertise() for one in members]
    again = make_plan(6, 5, 4, attempt=1)
    game = Game(again, make_values(again))
    game.parts = [one.join(again) for one in members]
    assert len(game.play().survivors) == 6
    fresh = [message for kind, _, message in game.transcript.sent if kind is Kind.ADVERTISE]
    assert not set(first) & set(fresh)
    assert len(directory(6)) == 6


def test_the_sum_is_decoded_to_the_step() -> None:
    plan = make_plan(7, length=40)
    rng = np.random.default_rng(3)
    real = rng.uniform(-1, 1, (7, 40))
    game = Game(plan, [plan.layout.encode({"table": row}) for row in real], {2: Kind.INPUT})
    found = game.play().fields["table"]
    error = plan.layout.scales["table"].error(6)
    assert np.abs(found - np.delete(real, 2, axis=0).sum(axis=0)).max() <= error
    assert error < 1e-7
