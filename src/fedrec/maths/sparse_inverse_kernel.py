"""Loops of :mod:`fedrec.maths.sparse_inverse` (numba)."""

from __future__ import annotations

import numpy as np

from fedrec.compiled import njit


@njit(cache=True)
def independent(order, degree, most, indptr, indices, chosen):
    """Choose items of at most so many neighbours, none beside another, those with the fewest first."""
    blocked = np.zeros(len(order), np.bool_)
    for item in order:
        if degree[item] > most:
            return
        if not blocked[item]:
            chosen[item] = True
            for at in range(indptr[item], indptr[item + 1]):
                blocked[indices[at]] = True


@njit(nogil=True, cache=True, error_model="numpy", fastmath={"contract"})
def add_rows_of(rows, begin, end, matrix, first, indptr, places, values):
    """``matrix[first + r, begin:end] = -sum_k values[r, k] matrix[places[r, k], begin:end]`` for some rows r."""
    for row in rows:
        into = matrix[first + row]
        into[begin:end] = 0.0
        for at in range(indptr[row], indptr[row + 1]):
            source, factor = matrix[places[at]], values[at]
            for column in range(begin, end):
                into[column] -= factor * source[column]
