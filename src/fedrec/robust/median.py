"""The median of any number of non-negative numbers in fixed memory: two passes over their bits."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

import numpy as np
from numpy.typing import NDArray

LOW = 12
"""Bits that the second pass tells apart; the bits of non-negative 32-bit numbers are in the numbers' order."""


def lower_median(passes: Callable[[], Iterable[NDArray[Any]]]) -> float:
    """The lower median of the positive numbers in all arrays, as 32-bit numbers; 0 where there are none.

    ``passes()`` gives the arrays, the same each time. The result depends neither on their order nor on how the
    numbers are cut into arrays.
    """
    high = np.zeros(1 << (32 - LOW), np.int64)
    for array in passes():
        np.add.at(high, _bits(array) >> LOW, 1)
    total = int(high.sum())
    if not total:
        return 0.0
    rank = (total - 1) // 2
    place = int(np.searchsorted(np.cumsum(high), rank, side="right"))
    rank -= int(high[:place].sum())
    low = np.zeros(1 << LOW, np.int64)
    for array in passes():
        bits = _bits(array)
        np.add.at(low, bits[bits >> LOW == place] & ((1 << LOW) - 1), 1)
    found = np.uint32((place << LOW) + int(np.searchsorted(np.cumsum(low), rank, side="right")))
    return float(found.view(np.float32))


def _bits(array: NDArray[Any]) -> NDArray[np.uint32]:
    with np.errstate(over="ignore"):
        numbers = np.ascontiguousarray(array, np.float32).reshape(-1)
    return numbers[np.isfinite(numbers) & (numbers > 0)].view(np.uint32)
