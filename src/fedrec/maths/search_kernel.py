"""The search for candidates on the CPU (numba): scores of a tile of pairs, and the best that each client has so far.

Inner products come from BLAS; all that is done to them happens while they are in the cache. ``arccos`` and ``cos`` are
polynomials, so that the compiler vectorises them: both are within 1e-6 of the library's, as 32-bit numbers allow.
"""

from __future__ import annotations

import math

import numpy as np

from fedrec.compiled import njit

_FAST = {"contract", "reassoc", "nsz", "arcp"}
_HALF, _PI = np.float32(math.pi / 2), np.float32(math.pi)


@njit(inline="always")
def arccos(x):
    """Abramowitz and Stegun 4.4.46, for x in [-1, 1]."""
    a = abs(x)
    p = np.float32(-0.0012624911)
    p = p * a + np.float32(0.0066700901)
    p = p * a + np.float32(-0.0170881256)
    p = p * a + np.float32(0.0308918810)
    p = p * a + np.float32(-0.0501743046)
    p = p * a + np.float32(0.0889789874)
    p = p * a + np.float32(-0.2145988016)
    p = p * a + np.float32(1.5707963050)
    p = p * np.float32(math.sqrt(np.float32(1) - a))
    return p if x >= 0 else _PI - p


@njit(inline="always")
def sine(y):
    """Taylor's series of the sine, for y in [-pi / 2, pi / 2]."""
    z = y * y
    p = np.float32(-2.5052108e-08)
    p = p * z + np.float32(2.7557319e-06)
    p = p * z + np.float32(-1.9841270e-04)
    p = p * z + np.float32(8.3333333e-03)
    p = p * z + np.float32(-1.6666667e-01)
    return y + y * z * p


@njit(nogil=True, cache=True, error_model="numpy", fastmath=_FAST)
def best_of_tile(begin, own, proxy, dots, norms_rows, norms_columns, similar, heads, complementary, sines, best, who):
    """Put what a tile has to offer into the lists ``best`` (scores) and ``who`` (columns) of its rows.

    ``dots`` ``[rows, columns]`` are inner products of sketches (empty: none), ``heads`` ``[k, rows, columns]`` those of
    X_u (k = 0: none). Columns are numbered from ``begin``, and row ``r`` is column ``own + r``.
    """
    k, width = len(heads), len(proxy)
    score, angle = np.empty(width, np.float32), np.empty(width, np.float32)
    one, share = np.float32(1), np.float32(1 / max(1, k))
    for r in range(len(best)):
        for j in range(width):
            score[j] = proxy[j]
        if dots.size:
            dot, norm = dots[r], norms_rows[r]
            for j in range(width):
                squares = max(norm + norms_columns[j] - np.float32(2) * dot[j], np.float32(0))
                score[j] += similar / (one + squares)
        if k:
            for j in range(width):
                angle[j] = np.float32(0)
            for l in range(k):
                inner = heads[l, r]
                for j in range(width):
                    angle[j] += arccos(min(max(inner[j], -one), one))
            for j in range(width):
                mean = angle[j] * share - _HALF
                if sines:  # sin(phi) = cos(phi - pi / 2)
                    turn = sine(np.float32(0.5) * mean)
                    score[j] += complementary * (one - np.float32(2) * turn * turn)
                else:  # cos(phi) = -sin(phi - pi / 2)
                    score[j] -= complementary * sine(mean)
        if begin <= own + r < begin + width:
            score[own + r - begin] = np.inf
        list_, names = best[r], who[r]
        at = np.argmin(list_)
        lowest = list_[at]
        for j in range(width):
            if score[j] > lowest:
                list_[at] = score[j]
                names[at] = begin + j
                at = np.argmin(list_)
                lowest = list_[at]
