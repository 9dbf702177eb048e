"""A sparse matrix times a thin one, on threads (numba); the same sums in the same order as scipy's."""

from __future__ import annotations

from fedrec.compiled import njit


@njit(nogil=True, cache=True)
def times_thin(rows, start, columns, values, thin, found):  # type: ignore[no-untyped-def]
    """``found[row] = sum_i values[i] thin[columns[i]]`` over the entries ``i`` of each row."""
    width = thin.shape[1]
    for row in rows:
        into = found[row]
        into[:] = 0
        for i in range(start[row], start[row + 1]):
            value, own = values[i], thin[columns[i]]
            for place in range(width):
                into[place] += value * own[place]
