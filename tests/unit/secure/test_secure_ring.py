"""Fixed point: no overflow at the extremes, errors within the stated bound, fields with scales of their own."""

from __future__ import annotations

import math
from dataclasses import asdict
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from fedrec.errors import BadInput
from fedrec.secure.check import CHECKS, check_words, verify
from fedrec.secure.failures import WrongSum
from fedrec.secure.layout import Field, Layout
from fedrec.secure.randomness import Stream
from fedrec.secure.ring import FINEST_NOISE, NOISE_REACH, Bits, Scale, centre, wrap

scales = st.builds(
    Scale,
    bound=st.floats(1e-30, 1e30),
    summands=st.integers(1, 2**20),
    bits=st.sampled_from([32, 64]),
    noise=st.one_of(st.just(0.0), st.floats(1e-6, 1e6)),
)


@given(scales)
def test_the_step_is_the_finest_that_leaves_room(scale: Scale) -> None:
    def reach(exponent: int) -> Fraction:
        step = Fraction(2) ** exponent
        bound = scale.summands * (Fraction(scale.bound) * step + 1)
        return bound + NOISE_REACH * Fraction(scale.noise) * step

    finest = scale.noise > 0 and scale.noise * 2.0 ** (scale.exponent + 1) > 2.0**FINEST_NOISE / 2
    assert reach(scale.exponent) <= scale.largest
    assert scale.largest < reach(scale.exponent + 1) or finest
    assert scale.noise * 2.0**scale.exponent <= 2.0**FINEST_NOISE


@given(st.floats(1e-9, 1e9), st.integers(1, 2000), st.sampled_from([32, 64]), st.booleans())
def test_sums_at_the_extremes_do_not_overflow(bound: float, summands: int, bits: Bits, up: bool) -> None:
    scale = Scale(bound, summands, bits)
    extreme = np.array([bound if up else -bound, 0.0])
    for uniform in (None, np.array([0.0, 0.999])):  # rounding away from zero as far as it goes
        whole = scale.encode(extreme, uniform)
        words = wrap(whole, bits)
        total = words.copy()
        for _ in range(summands - 1):
            total += words
        assert (centre(total, bits).astype(object) == summands * whole.astype(object)).all()
        # for numbers of more than 53 digits the float that shows the sum rounds once more
        slack = summands * bound * 2.0**-52
        error = abs(scale.decode(centre(total, bits))[0] - summands * extreme[0])
        assert error <= scale.error(summands, stochastic=uniform is not None) + slack


def test_one_step_finer_would_overflow() -> None:
    """The check above can fail: with the next finer step the extremes do not fit."""
    scale = Scale(1.0, 1000)
    finer = 1000 * math.ldexp(1.0, scale.exponent + 1)
    assert 1000 * math.ldexp(1.0, scale.exponent) <= scale.largest < finer


@given(st.lists(st.lists(st.floats(-1, 1), min_size=3, max_size=3), min_size=1, max_size=20))
def test_a_decoded_sum_is_within_half_a_step_for_each_summand(rows: list[list[float]]) -> None:
    scale = Scale(1.0, 20)
    total = sum(scale.encode(np.array(row)) for row in rows)
    assert isinstance(total, np.ndarray)
    exact = [sum(map(Fraction, column)) for column in zip(*rows, strict=True)]
    for found, true in zip(scale.decode(total), exact, strict=True):
        assert abs(Fraction(float(found)) - true) <= Fraction(scale.error(len(rows)))


def test_stochastic_rounding_has_the_right_mean() -> None:
    scale = Scale(1.0, 1)
    value = np.full(20000, 0.3 * scale.step)
    drawn = scale.encode(value, Stream.named(0, "rounding").uniform(20000))
    assert set(drawn.tolist()) == {0, 1}
    assert abs(drawn.mean() - 0.3) < 5 * math.sqrt(0.21 / 20000)
    assert scale.encode(value).sum() == 0


@pytest.mark.parametrize("value", [1.0000001, -2.0, math.nan, math.inf])
def test_numbers_beyond_the_bound_are_refused(value: float) -> None:
    with pytest.raises(BadInput, match="beyond the bound"):
        Scale(1.0, 10).encode(np.array([0.0, value]))


@pytest.mark.parametrize(
    "wrong", [{"bound": 0.0}, {"bound": math.inf}, {"summands": 0}, {"noise": -1.0}, {"bits": 16}, {"summands": 2**31}]
)
def test_scales_that_cannot_be_are_bad_input(wrong: dict[str, float]) -> None:
    with pytest.raises(BadInput):
        Scale(**{"bound": 1.0, "summands": 3, **wrong})  # type: ignore[arg-type]


@given(st.integers(0, 2**32), st.integers(1, 300))
def test_rounding_moves_a_clipped_update_no_further_than_stated(seed: int, size: int) -> None:
    scale = Scale(1.0, 10_000_000)  # a coarse step, so that rounding shows
    update = np.random.default_rng(seed).normal(size=size)
    update /= np.linalg.norm(update) * (1 + 1e-12)
    before = math.ldexp(1.0, scale.exponent)  # rounding adds at most sqrt(d) halves, or sqrt(d)
    assert np.linalg.norm(scale.encode(update)) <= before + math.sqrt(size) / 2
    uniform = Stream.named(seed, "u").uniform(size)
    assert np.linalg.norm(scale.encode(update, uniform)) <= before + math.sqrt(size)


def test_fields_have_scales_of_their_own() -> None:
    layout = Layout((Field("table", (2, 3), 1.0), Field("size", (), 5000.0), Field("loss", (1,), 1e-3)), 100)
    one = {"table": np.full((2, 3), 0.25), "size": np.array(4000.0), "loss": np.array([1e-4])}
    total = layout.encode(one) + layout.encode(one)
    found = layout.decode(total)
    for name, value in one.items():
        assert found[name].shape == value.shape
        np.testing.assert_allclose(found[name], 2 * value, atol=layout.scales[name].error(2))
    assert layout.scales["loss"].step < layout.scales["table"].step < layout.scales["size"].step
    assert Layout.from_json(asdict(layout)) == layout
    with pytest.raises(BadInput, match="do not fit"):
        layout.encode({"table": one["table"]})
    with pytest.raises(BadInput, match="shape"):
        layout.encode({**one, "table": np.zeros((3, 2))})


@given(st.integers(0, 30), st.integers(0, 31), st.integers(0, 2**32))
def test_the_check_finds_a_single_wrong_bit(place: int, bit: int, seed: int) -> None:
    values = np.random.default_rng(seed).integers(-(2**20), 2**20, (4, 31))
    digest = bytes(32)
    total, words = values.sum(axis=0), np.zeros(CHECKS, np.uint64)
    for row in values:
        words += check_words(row, digest)
    verify(total, words, 4, digest)
    wrong = total.copy()
    wrong[place] += 1 << bit
    with pytest.raises(WrongSum, match="checksums"):
        verify(wrong, words, 4, digest)
    with pytest.raises(WrongSum, match="count"):
        verify(total, words, 3, digest)


def test_the_check_finds_an_overflow_modulo_2_32() -> None:
    values = np.full((3, 2), 2**30)
    words = np.zeros(CHECKS, np.uint64)
    for row in values:
        words += check_words(row, bytes(32))
    with pytest.raises(WrongSum):
        verify(centre(wrap(values.sum(axis=0), 32), 32), words, 3, bytes(32))


def test_check_words_of_a_sum_depend_on_the_sum_alone() -> None:
    """They would otherwise tell the server more than the sum does."""
    left = [np.array([5, -7, 2**31]), np.array([0, 9, -3])]
    right = [np.array([1, 1, 2**31 - 3]), np.array([4, 1, 0])]
    digest = b"d" * 32
    assert (left[0] + left[1]).tolist() == (right[0] + right[1]).tolist()
    found = [check_words(a, digest) + check_words(b, digest) for a, b in (left, right)]
    np.testing.assert_array_equal(found[0], found[1])
