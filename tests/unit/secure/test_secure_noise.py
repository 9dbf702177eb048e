"""Noise shares: the right distribution, exactly drawn, enough of it after dropouts, and what it is worth."""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray
from scipy import stats
from secure_samples import Game, names

from fedrec.errors import BadInput
from fedrec.privacy.spending import secure_release
from fedrec.secure.accounting import FAR, distance, epsilon, near_gaussian, tail, uncovered, zcdp
from fedrec.secure.layout import Field, Layout
from fedrec.secure.lazy import Uniform, heads
from fedrec.secure.messages import Kind
from fedrec.secure.noise import (
    deviations,
    discrete_gaussian,
    noise_share,
    noisy_summands,
    summands_of,
)
from fedrec.secure.plan import Plan
from fedrec.secure.randomness import Stream
from fedrec.secure.rules import neighbourhood


def probabilities(sigma: float, reach: int) -> NDArray[np.float64]:
    weights: NDArray[np.float64] = np.exp(-(np.arange(-reach, reach + 1) ** 2) / (2 * sigma**2))
    return np.asarray(weights / weights.sum())


@pytest.mark.parametrize("sigma", [0.5, 1.0, 2.7, 8.0])
def test_draws_are_discrete_gaussian(sigma: float) -> None:
    drawn = discrete_gaussian(sigma, 100_000, Stream.named(3, "gaussian", str(sigma)))
    reach = int(4 * sigma) + 1
    expected = probabilities(sigma, 12 * reach)[11 * reach : 13 * reach + 1] * len(drawn)
    inside = np.abs(drawn) <= reach
    counts = np.bincount(drawn[inside] + reach, minlength=2 * reach + 1)
    found, true = [*counts, (~inside).sum()], [*expected, len(drawn) - expected.sum()]
    kept = np.array(true) > 5
    pairs = [np.append(np.array(x)[kept], np.array(x)[~kept].sum()) for x in (found, true)]
    keep = pairs[1] > 0.5
    assert stats.chisquare(pairs[0][keep], pairs[1][keep] * pairs[0][keep].sum() / pairs[1][keep].sum()).pvalue > 1e-6


@pytest.mark.parametrize("sigma", [3.0, 1000.5, 2.0**20, 2.0**38])
def test_moments(sigma: float) -> None:
    drawn = discrete_gaussian(sigma, 200_000, Stream.named(1, "moments", str(sigma))) / sigma
    n = len(drawn)
    assert abs(drawn.mean()) < 5 / math.sqrt(n)
    assert abs(drawn.var() - 1) < 5 * math.sqrt(2 / n)
    assert abs((drawn**4).mean() - 3) < 5 * math.sqrt(96 / n)
    assert stats.kstest(drawn + Stream.named(2, "spread").uniform(n) / sigma - 0.5 / sigma, "norm").pvalue > 1e-6


@pytest.mark.parametrize("sigma", [0.7, 40.0, 1e6])
def test_coins_decided_in_full_agree_with_those_decided_in_floats(sigma: float) -> None:
    """With a margin of 1 nearly every coin is decided by exact arithmetic, from the same words."""
    names_ = "exact", str(sigma)
    fast = discrete_gaussian(sigma, 300, Stream.named(0, *names_))
    slow = discrete_gaussian(sigma, 300, Stream.named(0, *names_), margin=1.0)
    np.testing.assert_array_equal(fast, slow)


@given(st.integers(0, 2**64 - 1), st.fractions(0, 60))
def test_a_coin_compares_with_exp(word: int, gamma: Fraction) -> None:
    shown = Uniform(word, Stream.named(0, "more")).below(gamma)
    value = math.exp(-gamma)
    if abs(word / 2**64 - value) > 1e-12:
        assert shown == (word / 2**64 < value)
    words, gammas = np.array([word], np.uint64), np.array([float(gamma)])
    assert heads(words, gammas, lambda _: gamma, Stream.named(0, "more"))[0] == shown


def test_coins_at_the_edge_draw_further_bits() -> None:
    """The word that agrees with exp(-1) in all 64 bits is undecided; both answers occur."""
    edge = int(Fraction(math.exp(-1)) * 2**64) + 0
    exact = 0x5E2D58D8B3BCDF1A  # floor(2^64 / e)
    assert abs(edge - exact) < 2**12
    answers = {Uniform(exact, Stream.named(seed, "edge")).below(Fraction(1)) for seed in range(40)}
    assert answers == {True, False}
    assert Uniform(exact - 1, Stream.named(0, "edge")).below(Fraction(1))
    assert not Uniform(exact + 1, Stream.named(0, "edge")).below(Fraction(1))


def test_a_word_of_one_is_decided_where_exp_lies_within_it() -> None:
    """2^64 exp(-44.1) is 1.3: with a word of one, three coins of ten show heads. None did."""
    gamma = Fraction(441, 10)
    words, gammas = np.ones(200, np.uint64), np.full(200, 44.1)
    shown = int(heads(words, gammas, lambda _: gamma, Stream.named(0, "one")).sum())
    assert 35 < shown < 85


def make_layout(noise: float, summands: int = 20, length: int = 4000) -> Layout:
    return Layout((Field("table", (length,), 1.0, noise), Field("count", (1,), 1.0)), summands)


@pytest.mark.parametrize("gone", [0, 2, 4])
def test_the_sum_has_the_stated_noise_after_dropouts(gone: int) -> None:
    """20 members, at least 16 survive, 1 may collude: 15 shares make the stated variance, whoever drops out."""
    layout = make_layout(0.5)
    rules = neighbourhood(20, dropout=0.2, colluding=0.05, server="curious").rules
    plan = Plan.of("run", 1, names(20), layout, rules)
    assert noisy_summands(20, rules.least_survivors, 0.05) == 15
    noise = [noise_share(layout, summands_of(plan, 0.05), Stream.named(0, "member", place)) for place in range(20)]
    game = Game(plan, noise, dict.fromkeys(range(gone), Kind.INPUT))
    found = game.play().fields
    assert not found["count"].any()
    variance = found["table"].var() / 0.25
    spread = 5 * math.sqrt(2 / 4000)
    assert abs(variance / ((20 - gone) / 15) - 1) < spread
    if gone == 4:  # without the one that colludes: no less than stated
        honest = np.sum(noise[gone + 1 :], axis=0)
        assert abs(layout.decode(honest)["table"].var() / 0.25 - 1) < spread


def test_one_draw_for_a_sum_has_the_variance_of_all_shares() -> None:
    layout = make_layout(0.5)
    drawn = layout.decode(noise_share(layout, 15, Stream.named(0, "sum"), 18))
    assert not drawn["count"].any()
    assert abs(drawn["table"].var() / 0.25 / (18 / 15) - 1) < 5 * math.sqrt(2 / 4000)


def test_shares_are_repeatable_by_name_and_secret_by_default() -> None:
    layout = make_layout(0.5)
    named = [noise_share(layout, 15, Stream.named(0, "a")) for _ in range(2)]
    np.testing.assert_array_equal(named[0], named[1])
    system = [noise_share(layout, 15, Stream.system()) for _ in range(2)]
    assert not np.array_equal(system[0], system[1])


def test_noise_that_is_too_coarse_or_of_nobody_is_bad_input() -> None:
    with pytest.raises(BadInput, match="too coarse"):
        deviations(Layout((Field("table", (2,), 1e9, 1e-3),), 1000), 900)
    with pytest.raises(BadInput, match="nobody's noise"):
        noisy_summands(10, 3, 0.3)
    with pytest.raises(BadInput):
        discrete_gaussian(0.0, 3, Stream.system())


def test_tau_vanishes_as_documented() -> None:
    assert tail(3.0, 1_000_000) < 1e-37
    assert tail(2.0, 1000) < 1e-15
    assert tail(0.5, 2) == pytest.approx(10 * math.exp(-2 * math.pi**2 * 0.25 / 2))
    assert tail(0.8, 5000) >= 10 * sum(math.exp(-2 * math.pi**2 * 0.64 * k / (k + 1)) for k in range(1, 5000))
    with pytest.raises(BadInput):
        tail(0.4, 10)


def test_zcdp_is_that_of_the_gaussian_mechanism_with_rounding() -> None:
    """D = 2 (clip + sqrt(d) / 2 steps) / sigma, rho = D^2 / 2."""
    layout = make_layout(0.5)
    step = layout.scales["table"].step
    apart = 2 * (1.0 + math.sqrt(4000) / 2 * step) / 0.5
    assert distance(layout, 1.0) == pytest.approx(apart, rel=1e-12)
    assert distance(layout, 1.0, adjacency="add-or-remove", alone=True) == pytest.approx(apart / 2, rel=1e-12)
    assert distance(layout, 1.0, stochastic=True) > apart
    assert zcdp(layout, 1.0, 15) == pytest.approx(apart**2 / 2, rel=1e-9)
    assert uncovered(layout) == ("count",)
    with pytest.raises(BadInput, match="no guarantee"):
        distance(make_layout(0.0), 1.0)


@pytest.mark.parametrize("alone", [False, True])
def test_what_is_rounded_together_with_others_parts_is_covered(alone: bool) -> None:
    """Counts were taken to enclose a right angle after rounding too: not where others' parts are in the same sum."""
    layout = Layout((Field("pairs", (4000,), 2.0**24, 8.0),), 40)
    step = layout.scales["pairs"].step
    counts, other = np.zeros(4000), np.zeros(4000)
    counts[:2000] = other[2000:] = 1 / math.sqrt(2000)
    near = 0.0 if alone else 0.49 * step  # of others: rounded down by themselves, and up with a count
    one, two = (layout.encode({"pairs": part + near}) for part in (counts, other))
    moved = float(np.linalg.norm(one - two)) * step / 8.0
    assert moved <= distance(layout, 1.0, nonnegative=True, alone=alone)
    if not alone:
        assert moved > 1.3 * distance(layout, 1.0, nonnegative=True, alone=True)


@given(st.floats(0.001, 400), st.floats(1e-12, 1e-3), st.sampled_from([1e-3, 1e-6, 1e-10]))
def test_what_is_left_out_fits_into_delta(rho: float, eta: float, delta: float) -> None:
    """From epsilon 56 on, what does not happen under other data may happen with more than delta under one's own."""
    from dp_accounting.gaussian_mechanism import get_epsilon_gaussian

    found = near_gaussian(rho, eta, delta)
    if math.isinf(found):
        return
    left_out = (1 + math.exp(found)) * math.exp(-FAR)
    assert left_out < delta
    exact = get_epsilon_gaussian(1 / math.sqrt(2 * rho), (delta - left_out) * math.exp(-eta))
    assert found >= (exact + 2 * eta) * (1 - 1e-9)


def test_fields_with_noise_of_their_own_add_up() -> None:
    layout = Layout((Field("a", (1,), 1.0, 2.0), Field("b", (1,), 3.0, 4.0)), 10)
    each = distance(layout, {("a",): 1.0, ("b",): 3.0})
    assert each == pytest.approx(2 * math.hypot(1 / 2, 3 / 4), rel=1e-6)
    assert distance(layout, 3.0) == pytest.approx(2 * 3 / 2, rel=1e-6)


def test_epsilon_grows_with_releases_and_shrinks_with_noise() -> None:
    low, high = (zcdp(make_layout(noise), 1.0, 15) for noise in (4.0, 1.0))
    assert epsilon(low, 1e-6) < epsilon(high, 1e-6)
    assert epsilon(low, 1e-6, releases=4) == pytest.approx(epsilon(4 * low, 1e-6), rel=1e-9)
    rho = 0.5
    assert epsilon(rho, 1e-6) < rho + 2 * math.sqrt(rho * math.log(1e6))  # the simple conversion of zCDP


def test_gaussian_accounting_is_tighter_and_near_the_exact_gaussian() -> None:
    from dp_accounting.gaussian_mechanism import get_epsilon_gaussian

    layout = make_layout(8.0)
    by_zcdp = epsilon(zcdp(layout, 1.0, 15), 1e-6, 10)
    tight = secure_release(layout, 1.0, 15).times(10).epsilon(1e-6)
    exact = get_epsilon_gaussian(8.0 / 2 / math.sqrt(10), 1e-6)
    assert exact <= tight < exact * 1.001
    assert tight < 0.99 * by_zcdp
    coarse = Layout((Field("table", (4000,), 1e8, 64.0),), 20)  # 64 steps of noise: discreteness shows
    assert secure_release(coarse, 1.0, 15).epsilon(1e-6) == epsilon(zcdp(coarse, 1.0, 15), 1e-6)


@pytest.mark.parametrize(("noise", "shift"), [(40.0, 30), (24.0, 7)])
def test_gaussian_accounting_holds_for_the_exact_distribution(noise: float, shift: int) -> None:
    """One number, three shares, a step of one: the exact privacy loss of the sum is within the stated epsilon."""
    layout = Layout((Field("x", (1,), 2.0**29, noise),), 3)
    assert layout.scales["x"].step == 1.0
    one = probabilities(noise / math.sqrt(3), int(15 * noise))
    total = np.convolve(np.convolve(one, one), one)
    for delta in (1e-3, 1e-6):
        at = secure_release(layout, float(shift), 3, adjacency="add-or-remove").epsilon(delta)
        lost = np.maximum(total[shift:] - math.exp(at) * total[:-shift], 0).sum()
        assert lost <= delta


def test_privacy_loss_in_one_dimension_is_within_the_bound() -> None:
    """Exact hockey-stick divergence of a sum of three shares and its shift, against epsilon of the bound."""
    sigma, shares, shift = 2.0, 3, 4
    one = probabilities(sigma, 60)
    total = np.convolve(np.convolve(one, one), one)
    rho = 0.5 * (shift / (math.sqrt(shares) * sigma) + tail(sigma, shares)) ** 2
    for delta in (1e-2, 1e-4, 1e-6):
        at = epsilon(rho, delta)
        lost = np.maximum(total[shift:] - math.exp(at) * total[:-shift], 0).sum()
        assert lost <= delta
