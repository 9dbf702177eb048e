"""A coalition of the server and fewer than the threshold of neighbours learns the sum of the others, no more."""

from __future__ import annotations

import numpy as np
import pytest
from coalition import View, explained, observe, simulate
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats
from secure_samples import Game, make_plan, make_values

from fedrec.secure.messages import Kind
from fedrec.secure.plan import Plan
from fedrec.secure.ring import Integers


def shuffled(values: list[Integers], honest: list[int], rng: np.random.Generator) -> dict[int, Integers]:
    """Other inputs of the honest members with the same sum."""
    drawn = {u: rng.integers(-(2**20), 2**20, len(values[0])) for u in honest[:-1]}
    drawn[honest[-1]] = np.sum([values[u] for u in honest], axis=0) - np.sum(list(drawn.values()), axis=0)
    return drawn


def play(n: int, k: int, t: int, colluding: set[int], dropouts: dict[int, Kind], seed: int = 0) -> tuple[Game, View]:
    plan = make_plan(n, k, t, quorum=0)
    game = Game(plan, make_values(plan, seed), dropouts)
    return game, observe(game, colluding)


@given(st.data())
@settings(max_examples=30)
def test_any_inputs_with_the_same_sum_explain_the_view(data: st.DataObject) -> None:
    n = data.draw(st.integers(6, 11))
    t = data.draw(st.integers(3, n - 3))
    colluding = data.draw(st.sets(st.integers(0, n - 1), max_size=t - 1))
    staying = sorted(set(range(n)) - colluding)
    who = data.draw(st.lists(st.sampled_from(staying), unique=True, max_size=max(0, min(n - 1 - t, len(staying) - 2))))
    dropouts = {place: data.draw(st.sampled_from(list(Kind))) for place in who}
    game, view = play(n, n - 1, t, colluding, dropouts, data.draw(st.integers(0, 9)))
    honest = sorted(view.residuals)
    assert all(shares < t for shares in view.key_shares.values())
    rng = np.random.default_rng(data.draw(st.integers(0, 99)))
    assert explained(game.plan, view, {u: game.values[u] for u in honest}) is not None
    other = shuffled(game.values, honest, rng)
    assert explained(game.plan, view, other) is not None
    other[honest[0]] = other[honest[0]] + 1  # another sum: the coalition does know that
    assert explained(game.plan, view, other) is None


def test_a_coalition_around_one_member_would_see_it() -> None:
    """The test above can fail: where all neighbours of a member collude, its vector lies open."""
    plan = make_plan(9, 4, 2, least_survivors=3, quorum=0)
    target = 0
    colluding = set(plan.neighbours_of(target))
    game = Game(plan, make_values(plan))
    view = observe(game, colluding)
    assert view.key_shares[target] >= plan.rules.threshold
    honest = sorted(view.residuals)
    other = shuffled(game.values, honest, np.random.default_rng(0))
    assert explained(plan, view, other) is None


def test_a_cut_circle_would_tell_the_sums_of_its_parts() -> None:
    """And where those that are gone cut the circle in two: this is what the window is for."""
    plan = make_plan(12, 4, 2, least_survivors=3, quorum=0)
    order = plan.circle.tolist()
    game = Game(plan, make_values(plan), dict.fromkeys([order[0], order[1], order[6], order[7]], Kind.INPUT))
    view = observe(game, set())
    other = shuffled(game.values, sorted(view.residuals), np.random.default_rng(0))
    assert explained(plan, view, other) is None
    same = {u: game.values[u] for u in view.residuals}  # the same sums in both parts: those explain it
    left, right = order[2], order[3]
    same[left], same[right] = same[left] + 5, same[right] - 5
    assert explained(plan, view, same) is not None


def test_the_view_is_reproduced_from_the_sum_alone() -> None:
    """Simulated residuals have the view's form, its sum and its distribution; every input explains them as well."""
    colluding, dropouts = {1, 4}, {6: Kind.INPUT, 7: Kind.UNMASK}
    game, view = play(10, 9, 4, colluding, dropouts)
    honest = sorted(view.residuals)
    total = np.sum([game.values[u] for u in honest], axis=0)
    made = View(simulate(game.plan, honest, total, np.random.default_rng(5)), view.edges, view.key_shares, view.shape)
    assert {u: v.shape for u, v in made.residuals.items()} == {u: v.shape for u, v in view.residuals.items()}
    for seen in (view, made):
        assert explained(game.plan, seen, {u: game.values[u] for u in honest}) is not None
        assert explained(game.plan, seen, shuffled(game.values, honest, np.random.default_rng(1))) is not None


def test_messages_have_the_same_form_for_all_inputs() -> None:
    """Who sends how many bytes when does not depend on the vectors."""
    shapes = [play(8, 7, 3, {2}, {5: Kind.INPUT}, seed)[1].shape for seed in (0, 1)]
    assert shapes[0] == shapes[1]


@pytest.mark.parametrize("constant", [0, 2**20])
def test_what_is_left_of_an_honest_vector_is_uniform(constant: int) -> None:
    """After 40 sums of one and the same vector the residuals of its owner look like those of the simulator."""
    plan, seen, drawn = make_plan(6, 5, 3, quorum=0, length=64), [], []
    rng = np.random.default_rng(7)
    for round_ in range(40):
        again = Plan(plan.run, round_, 0, 0, plan.members, plan.rules, plan.layout)
        values = [np.full(64, constant)] * 6
        view = observe(Game(again, values), {0})
        honest = sorted(view.residuals)
        seen.append(view.residuals[honest[0]])
        drawn.append(simulate(again, honest, np.full(64, 5 * constant), rng)[honest[0]])
    for words in (seen, drawn):
        counts = np.bincount(np.concatenate(words).astype(np.int64) >> 28, minlength=16)
        assert stats.chisquare(counts).pvalue > 1e-6
