"""Ragged lists: taking lists out, and the index arithmetic."""

from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from fedrec.data.ragged import Ragged, consecutive, offsets, segments

lists_of_numbers = st.lists(st.lists(st.integers(-9, 9), max_size=5), min_size=1, max_size=8)


def ragged(lists: list[list[int]]) -> Ragged:
    counts = np.array([len(values) for values in lists])
    return Ragged(offsets(counts), np.array([v for values in lists for v in values], dtype=np.int32))


@given(lists_of_numbers, st.data())
def test_take_is_indexing_lists(lists: list[list[int]], data: st.DataObject) -> None:
    chosen = data.draw(st.lists(st.integers(0, len(lists) - 1), max_size=10))
    taken = ragged(lists).take(np.array(chosen, dtype=np.int64))
    assert [taken[i].tolist() for i in range(len(taken))] == [lists[i] for i in chosen]
    assert taken.counts.tolist() == [len(lists[i]) for i in chosen]


@given(lists_of_numbers)
def test_owners_and_segments_name_every_value(lists: list[list[int]]) -> None:
    every = ragged(lists)
    assert every.owners.tolist() == [i for i, values in enumerate(lists) for _ in values]
    assert segments(every.start, np.arange(len(lists))).tolist() == list(range(len(every.values)))


def test_consecutive_take_is_a_view() -> None:
    whole = ragged([[1], [2, 3], [], [4]])
    assert np.shares_memory(whole.take(np.array([1, 2, 3])).values, whole.values)
    assert not np.shares_memory(whole.take(np.array([3, 1])).values, whole.values)


def test_consecutive() -> None:
    assert consecutive(np.array([3, 4, 5]))
    assert not consecutive(np.array([3, 5, 4]))
    assert not consecutive(np.array([4, 3, 5]))
    assert not consecutive(np.array([], dtype=np.int64))


def test_no_lists_have_no_segments() -> None:
    assert len(segments(np.array([0, 2]), np.array([], dtype=np.int64))) == 0
