"""Keyed randomness: right distributions, and nothing but the key matters."""

from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from fedrec import keyed


def test_the_first_words_are_splitmix64() -> None:
    """Reference values of SplitMix64 seeded with 1234567 (published test vector)."""
    words = keyed.words(np.array([1234567], np.uint64), 3)[0]
    assert [int(w) for w in words] == [6457827717110365317, 3203168211198807973, 9817491932198370423]


@given(st.integers(0, 2**63), st.integers(0, 2**63))
def test_streams_of_arrays_equal_streams_of_integers(base: int, key: int) -> None:
    assert int(keyed.streams(base, np.array([key], np.uint64))[0]) == keyed.combine(base, key)


def test_a_value_depends_on_its_own_key_only() -> None:
    keys = keyed.keys_of(["a", "b", "c"])
    np.testing.assert_array_equal(keyed.normal(keys, 5)[1], keyed.normal(keys[1:2], 5)[0])
    np.testing.assert_array_equal(keyed.uniform(keys, 5)[:, 2:], keyed.uniform(keys, 3, first=2))


def test_moments_are_right() -> None:
    keys = keyed.keys_of(range(200))
    uniform, normal, laplace = keyed.uniform(keys, 2000), keyed.normal(keys, 2000), keyed.laplace(keys, 2000)
    assert abs(uniform.mean() - 0.5) < 0.003
    assert abs(uniform.var() - 1 / 12) < 0.001
    assert abs(normal.mean()) < 0.01
    assert abs(normal.var() - 1) < 0.02
    assert abs(laplace.mean()) < 0.01
    assert abs(laplace.var() - 2) < 0.05


@given(st.integers(1, 60), st.data())
def test_a_sample_has_distinct_indices_in_range(population: int, data: st.DataObject) -> None:
    size = data.draw(st.integers(1, population))
    chosen = keyed.sample(keyed.stream(size, "x"), population, size)
    assert len(set(chosen.tolist())) == size
    assert chosen.min() >= 0
    assert chosen.max() < population
    assert (np.diff(chosen) > 0).all()


def test_streams_of_different_purposes_differ() -> None:
    assert len({keyed.stream(0, "a"), keyed.stream(0, "b"), keyed.stream(1, "a"), keyed.stream(0, "a", 1)}) == 4
