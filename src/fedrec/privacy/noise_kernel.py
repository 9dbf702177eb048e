"""The numba twins of keyed noise: as :mod:`fedrec.privacy.noise` adds it, without temporaries."""

from __future__ import annotations

import numpy as np

from fedrec.compiled import njit
from fedrec.learn.kernel.random import word

_ONE, _SHIFT = np.uint64(1), np.uint64(11)


@njit(cache=True, nogil=True)
def add_laplace(clients, numbers, start, streams, scale):
    """Add Laplace(0, scale) in place to the numbers of the given clients.

    ``numbers`` ``[rows, width]``, client c's at ``start[c] .. start[c + 1]``; ``streams`` ``[clients]``.
    """
    for client in clients:
        drawn_so_far = np.uint64(0)
        for row in range(start[client], start[client + 1]):
            for column in range(numbers.shape[1]):
                centred = (word(streams[client], drawn_so_far) >> _SHIFT) * 2.0**-53 - 0.5
                drawn_so_far += _ONE
                drawn = np.log(max(1.0 - 2.0 * abs(centred), 2.0**-53))
                numbers[row, column] += numbers.dtype.type(-scale * drawn if centred > 0 else scale * drawn)


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
