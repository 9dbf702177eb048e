"""Lists of different length in one array, and the index arithmetic that goes with them."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

Int32 = NDArray[np.int32]
Int64 = NDArray[np.int64]


@dataclass(frozen=True)
class Ragged:
    """Lists of different length in one array: list ``i`` is ``values[start[i]:start[i + 1]]``."""

    start: Int64  # [lists + 1]
    values: Int32  # [start[-1]]

    def __len__(self) -> int:
        return len(self.start) - 1

    def __getitem__(self, index: int) -> Int32:
        return self.values[self.start[index] : self.start[index + 1]]

    @property
    def counts(self) -> Int64:
        return np.diff(self.start)

    def take(self, lists: NDArray[np.integer]) -> Ragged:
        """The chosen lists, in the order given; a view where they are consecutive."""
        if len(lists) == 0:
            return Ragged(np.zeros(1, np.int64), self.values[:0])
        if consecutive(lists):
            first, last = int(lists[0]), int(lists[-1]) + 1
            start = self.start[first : last + 1]
            return Ragged(start - start[0], self.values[start[0] : start[-1]])
        return Ragged(offsets(lengths(self.start, lists)), self.values[segments(self.start, lists)])

    @cached_property
    def owners(self) -> Int64:
        """The list each value belongs to: ``[start[-1]]``."""
        return np.repeat(np.arange(len(self)), self.counts)


def listed(owners: NDArray[np.integer], values: NDArray[np.integer], count: int) -> Ragged:
    """Values as one ascending list per owner, each once."""
    if not len(values):
        return Ragged(np.zeros(count + 1, np.int64), np.zeros(0, np.int32))
    wide = np.int64(values.max()) + 1
    owner, value = np.divmod(np.unique(owners.astype(np.int64) * wide + values), wide)
    return Ragged(offsets(np.bincount(owner, minlength=count)), value.astype(np.int32))


def placed(lists: Ragged, places: NDArray[np.integer]) -> Ragged:
    """The lists with ``places[value]`` for each value, ascending; those whose place is below 0 are left out."""
    values = places[lists.values]
    return listed(lists.owners[values >= 0], values[values >= 0], len(lists))


def consecutive(index: NDArray[np.integer]) -> bool:
    """Whether the indices ascend by one, so that a slice does instead of a copy."""
    return len(index) > 0 and int(index[-1]) - int(index[0]) + 1 == len(index) and bool((np.diff(index) == 1).all())


def offsets(counts: NDArray[np.integer]) -> Int64:
    """``[0, c0, c0 + c1, ...]``."""
    return np.concatenate([[0], np.cumsum(counts)]).astype(np.int64)


def lengths(start: Int64, lists: NDArray[np.integer]) -> Int64:
    """Entries of each of the chosen lists; takes no longer where there are many others."""
    return np.asarray(start[lists + 1] - start[lists])


def segments(start: Int64, lists: NDArray[np.integer]) -> Int64:
    """Indices of all entries of the chosen lists, list after list."""
    if len(lists) == 0:
        return np.zeros(0, np.int64)
    first, counts = start[lists], lengths(start, lists)
    into = offsets(counts)
    return np.asarray(np.arange(into[-1]) + np.repeat(first - into[:-1], counts))
