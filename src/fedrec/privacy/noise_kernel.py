"""The numba twins of keyed noise: as :mod:`fedrec.privacy.noise` adds it, without temporaries."""

from __future__ import annotations

import numpy as np

from fedrec.compiled import njit
from fedrec.learn.kernel.random import word

_ONE, _SHIFT = np.uint64(1), np.uint64(11)

BLOCK = 1024
"""Numbers drawn at once: one step of the work is done for all of them before the next, several at a time."""
_HALF_ROOT = np.int64(0x3FE6A09E667F3BCD)  # the bits of sqrt(1/2)
_LN_2 = 0.6931471805599453


@njit(cache=True, nogil=True, error_model="numpy", fastmath={"contract"})
def to_logarithms(values, bits, powers):
    """The natural logarithm of every value (positive, not tiny), in place, to the last digit or two.

    x = 2^k m with m between sqrt(1/2) and sqrt(2), and ln m = 2 artanh((m - 1) / (m + 1)) as a series. Plain loops
    without a call, so that a processor works on several numbers at once. ``bits`` is ``values`` seen as int64.
    """
    for i in range(len(bits)):
        power = (bits[i] - _HALF_ROOT) >> 52
        powers[i] = power
        bits[i] -= power << 52
    for i in range(len(values)):
        ratio = (values[i] - 1.0) / (values[i] + 1.0)
        square = ratio * ratio
        series = 1 / 19
        series = series * square + 1 / 17
        series = series * square + 1 / 15
        series = series * square + 1 / 13
        series = series * square + 1 / 11
        series = series * square + 1 / 9
        series = series * square + 1 / 7
        series = series * square + 1 / 5
        series = series * square + 1 / 3
        series = series * square + 1.0
        values[i] = powers[i] * _LN_2 + 2.0 * ratio * series


@njit(cache=True, nogil=True)
def add_laplace(clients, numbers, start, streams, scale):
    """Add Laplace(0, scale) in place to the numbers of the given clients.

    ``numbers`` ``[rows, width]``, in one run of memory, client c's at ``start[c] .. start[c + 1]``; ``streams``
    ``[clients]``.
    """
    flat, width = numbers.reshape(-1), numbers.shape[1]
    drawn, centred, inside = np.empty(BLOCK, np.int64), np.empty(BLOCK), np.empty(BLOCK)
    bits, powers = inside.view(np.int64), np.empty(BLOCK, np.int64)
    for client in clients:
        stream, end = streams[client], start[client + 1] * width
        drawn_so_far = np.uint64(0)
        for first in range(start[client] * width, end, BLOCK):
            for i in range(BLOCK):
                drawn[i] = np.int64(word(stream, drawn_so_far + np.uint64(i)) >> _SHIFT)
            for i in range(BLOCK):
                centred[i] = np.float64(drawn[i]) * 2.0**-53 - 0.5
                within = 1.0 - 2.0 * abs(centred[i])
                inside[i] = within if within > 0.0 else 2.0**-53
            to_logarithms(inside, bits, powers)
            for i in range(min(BLOCK, end - first)):
                added = scale * inside[i]
                flat[first + i] += numbers.dtype.type(-added if centred[i] > 0 else added)
            drawn_so_far += np.uint64(BLOCK)


@njit(cache=True, nogil=True)
def add_gaussian(clients, numbers, start, streams, scale):
    """Add Normal(0, scale^2) in place, as :func:`add_laplace`: Box-Muller, an even count of draws a row."""
    width = numbers.shape[1]
    for client in clients:
        drawn_so_far = np.uint64(0)
        for row in range(start[client], start[client + 1]):
            for column in range(0, width, 2):
                first = (word(streams[client], drawn_so_far) >> _SHIFT) * 2.0**-53
                second = (word(streams[client], drawn_so_far + _ONE) >> _SHIFT) * 2.0**-53
                drawn_so_far += _ONE + _ONE
                radius, cosine = scale * np.sqrt(-2.0 * np.log1p(-first)), np.cos(2.0 * np.pi * second)
                numbers[row, column] += numbers.dtype.type(radius * cosine)
                if column + 1 < width:  # a root takes half the time of a sine, and is as near as 1e-8
                    sine = np.sqrt((1.0 - cosine) * (1.0 + cosine))
                    numbers[row, column + 1] += numbers.dtype.type(radius * (sine if second < 0.5 else -sine))
