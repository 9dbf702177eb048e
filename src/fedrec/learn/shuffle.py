"""The order of a client's samples in one epoch: a keyed permutation that is elementwise on any backend.

A bijection of ``0 .. 2^b - 1`` (three rounds of multiply by an odd word, add a word, fold the high half
down), applied to 0, 1, 2, ...; values that are no sample (``>= n``) are left out. No state, no sorting,
so numpy, numba and torch give the same order. This is the numpy one.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from fedrec import keyed

ROUNDS = 3
EPOCHS_AT = 1 << 40
"""Where the words of epochs begin in a client's stream, far from those of its samples."""


def bits_of(n: int) -> int:
    """The smallest ``b`` with ``2^b >= n``, at least one."""
    return max(1, int(n - 1).bit_length())


def epoch_key(key: int, epoch: int) -> int:
    """The stream of one epoch of a client."""
    return int(keyed.words(np.array([key], np.uint64), 1, EPOCHS_AT + epoch)[0, 0])


def order(n: int, key: int) -> NDArray[np.int64]:
    """The permutation of ``n`` samples under an epoch's stream."""
    bits = bits_of(n)
    mask, shift = np.uint64((1 << bits) - 1), np.uint64((bits + 1) // 2)
    value = np.arange(1 << bits, dtype=np.uint64)
    for word in keyed.words(np.array([key], np.uint64), ROUNDS)[0]:
        value = (value * (word & mask | np.uint64(1)) + (word >> np.uint64(32) & mask)) & mask
        value ^= value >> shift
    return value[value < n].astype(np.int64)
