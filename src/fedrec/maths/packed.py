"""Symmetric matrices as their upper triangle, row after row: half the numbers, each entry once.

Sending both halves would cost twice the bytes; with noise on every number it would also show each entry
twice, so that averaging the two takes noise off.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from fedrec.data.ragged import Int64, Ragged, offsets

SIDE = 256
"""Rows and columns of a block that is turned at once."""


def packed_size(n: int) -> int:
    """Numbers in the triangle of an ``[n, n]`` matrix."""
    return n * (n + 1) // 2


def row_starts(n: int) -> Int64:
    """``[n]`` where row ``i`` begins (at its diagonal entry): entry ``(i, j)`` is ``start[i] + j - i``."""
    rows = np.arange(n, dtype=np.int64)
    return rows * n - rows * (rows - 1) // 2


def pack(matrix: NDArray[Any]) -> NDArray[Any]:
    """``[n, n] -> [n (n + 1) / 2]``; what lies below the diagonal is not read."""
    n = len(matrix)
    out = np.empty(packed_size(n), matrix.dtype)
    for i, start in enumerate(row_starts(n)):
        out[start : start + n - i] = matrix[i, i:]
    return out


def unpack(triangle: NDArray[Any], n: int) -> NDArray[Any]:
    """``[n (n + 1) / 2] -> [n, n]``, symmetric."""
    out = unpack_upper(triangle, n)
    mirror(out)
    return out


def mirror(matrix: NDArray[Any]) -> None:
    """Copy what lies above the diagonal below it, in place; block by block, as a column at a time misses the cache."""
    for begin in range(0, len(matrix), SIDE):
        end = begin + SIDE
        own = matrix[begin:end, begin:end]
        own[...] = np.triu(own) + np.triu(own, 1).T
        matrix[end:, begin:end] = matrix[begin:end, end:].T


def unpack_upper(triangle: NDArray[Any], n: int) -> NDArray[Any]:
    """``[n (n + 1) / 2] -> [n, n]``, zero below the diagonal."""
    out = np.zeros((n, n), triangle.dtype)
    for i, start in enumerate(row_starts(n)):
        out[i, i:] = triangle[start : start + n - i]
    return out


def unpack_sparse(triangle: NDArray[Any], n: int) -> Any:
    """``[n (n + 1) / 2] -> [n, n]``, symmetric and sparse, without the zeros."""
    from scipy.sparse import csr_matrix, triu

    place, start = np.flatnonzero(triangle), row_starts(n)
    row = np.searchsorted(start, place, "right") - 1
    upper = csr_matrix((triangle[place], (row, place - start[row] + row)), shape=(n, n))
    return (upper + triu(upper, 1).T).tocsr()


def pairs_of_lists(lists: Ragged, n: int) -> tuple[Int64, Int64]:
    """Where the ones of ``x'x`` lie in its triangle, for each zero-one list ``x``.

    Returns ``start`` ``[lists + 1]`` and ``places``; those of a list ascend when the list does.
    """
    start, first, second = pairs_within(lists)
    return start, places_of(lists.values[first], lists.values[second], n)


def pairs_within(lists: Ragged) -> tuple[Int64, Int64, Int64]:
    """Every value with itself and with those after it in its list: ``start`` ``[lists + 1]`` and both positions."""
    counts = lists.counts
    last = np.repeat(lists.start[1:], counts)  # [values] end of the list each value belongs to
    own = np.arange(len(lists.values))
    following = last - own
    into = offsets(following)
    second = np.arange(into[-1]) + np.repeat(own - into[:-1], following)
    return into[lists.start], np.repeat(own, following), second


def places_of(rows: NDArray[Any], columns: NDArray[Any], n: int) -> Int64:
    """Where entries ``(row, column)`` with ``row <= column`` lie in the triangle."""
    row = rows.astype(np.int64)
    return np.asarray(row_starts(n)[row] - row + columns)
