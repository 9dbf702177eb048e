"""The numba twin of :mod:`fedrec.keyed` and :mod:`fedrec.learn.shuffle`."""

from __future__ import annotations

import numpy as np

from fedrec import keyed
from fedrec.compiled import njit
from fedrec.learn import shuffle

_GOLDEN = np.uint64(keyed.GOLDEN)
_MIX_1 = np.uint64(keyed.MIX_1)
_MIX_2 = np.uint64(keyed.MIX_2)
_EPOCHS_AT = np.uint64(shuffle.EPOCHS_AT)
_ROUNDS = shuffle.ROUNDS
_ONE = np.uint64(1)


@njit(inline="always")
def mix(value):
    """SplitMix64's finaliser of one uint64."""
    value = (value ^ (value >> np.uint64(30))) * _MIX_1
    value = (value ^ (value >> np.uint64(27))) * _MIX_2
    return value ^ (value >> np.uint64(31))


@njit(inline="always")
def word(key, index):
    """Value ``index`` (uint64) of stream ``key``."""
    return mix(key + (index + _ONE) * _GOLDEN)


@njit(inline="always")
def below(value, n):
    """A word brought to ``0 .. n - 1`` by its upper half; bias at most ``n / 2^32``."""
    return np.int64((value >> np.uint64(32)) * np.uint64(n) >> np.uint64(32))


@njit(cache=True, nogil=True)
def order(n, key, into):
    """Write the permutation of ``n`` samples into ``into`` (uint32, at least ``n + 1`` long)."""
    bits = 1
    while (1 << bits) < n:
        bits += 1
    mask = np.uint32((1 << bits) - 1)
    shift = np.uint32((bits + 1) // 2)
    half = np.uint64(32)
    first, second, third = word(key, np.uint64(0)), word(key, np.uint64(1)), word(key, np.uint64(2))
    times_1, plus_1 = np.uint32(first) & mask | np.uint32(1), np.uint32(first >> half) & mask
    times_2, plus_2 = np.uint32(second) & mask | np.uint32(1), np.uint32(second >> half) & mask
    times_3, plus_3 = np.uint32(third) & mask | np.uint32(1), np.uint32(third >> half) & mask
    limit = np.uint32(n)
    count = np.uint64(0)
    for i in range(1 << bits):
        value = np.uint32(np.uint32(np.uint32(i) * times_1) + plus_1) & mask
        value = np.uint32(value ^ (value >> shift))
        value = np.uint32(np.uint32(value * times_2) + plus_2) & mask
        value = np.uint32(value ^ (value >> shift))
        value = np.uint32(np.uint32(value * times_3) + plus_3) & mask
        value = np.uint32(value ^ (value >> shift))
        # written always, kept only when it is a sample: no branch to mispredict
        into[count] = value
        count += np.uint64(value < limit)


@njit(inline="always")
def epoch_key(key, epoch):
    """The stream of one epoch of a client."""
    return word(key, _EPOCHS_AT + np.uint64(epoch))
