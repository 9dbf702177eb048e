"""The numba twin of keyed Laplace noise: as :mod:`fedrec.privacy.noise` adds it, without temporaries."""

from __future__ import annotations

import numpy as np
from numba import njit

from fedrec import keyed

_GOLDEN = np.uint64(keyed.GOLDEN)
_MIX_1 = np.uint64(keyed.MIX_1)
_MIX_2 = np.uint64(keyed.MIX_2)
_SHIFT, _30, _27, _31 = np.uint64(11), np.uint64(30), np.uint64(27), np.uint64(31)


@njit(cache=True, nogil=True)
def add_laplace(clients, numbers, start, streams, scale):
    """Add Laplace(0, scale) in place to the numbers of the given clients.

    ``numbers`` ``[rows, width]``, client c's at ``start[c] .. start[c + 1]``; ``streams`` ``[clients]``.
    """
    for client in clients:
        key = streams[client]
        for row in range(start[client], start[client + 1]):
            for column in range(numbers.shape[1]):
                key += _GOLDEN
                word = (key ^ (key >> _30)) * _MIX_1
                word = (word ^ (word >> _27)) * _MIX_2
                word = word ^ (word >> _31)
                centred = (word >> _SHIFT) * 2.0**-53 - 0.5
                drawn = np.log(max(1.0 - 2.0 * abs(centred), 2.0**-53))
                numbers[row, column] += numbers.dtype.type(-scale * drawn if centred > 0 else scale * drawn)
