"""The whole inverse of a large symmetric positive definite matrix most of whose entries are zero.

Items that occur with few others are eliminated first, as in sparse Cholesky by minimum degree, many at once: a level is
a set of items none of which occurs with another of it. What is left, the core, is small and nearly full; it is inverted
densely. Then the eliminated items come back, the last level first:

    P[level, before] = -E P[before, before],  P[level, level] = D^-1 - E P[before, level]

with ``E = D^-1 A[level, before]`` as sparse as the elimination left it. Two thirds of the work of a dense inverse are
the products of full blocks; here these are sums of as many rows as an item has neighbours.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fedrec.core.fold import Float64
from fedrec.data.ragged import Int64
from fedrec.threads import over_rows

WORTH = 0.1
"""An item is eliminated while its neighbours are fewer than this share of ``core^2 / n``: adding up rows costs about
ten times as much a number as the dense inverse does."""
SIDE = 512
"""Rows that are turned into columns at once."""


@dataclass(frozen=True)
class Level:
    """Items that were eliminated together."""

    items: Int64  # [level]
    scale: Float64  # [level] 1 / pivot
    factor: Any  # sparse [level, those left] E
    left: Int64  # items after it


def inverse(matrix: Any) -> tuple[Float64, Int64]:
    """``P = A^-1`` ``[n, n]`` of a sparse symmetric matrix, and the items in the order of its rows and columns."""
    from fedrec.maths.sparse_inverse_kernel import add_rows_of

    n = matrix.shape[0]
    levels, core, left = eliminated(matrix)
    found = np.zeros((n, n))
    found[: len(left), : len(left)] = core.toarray()
    if len(left):
        dense_inverse(found[: len(left), : len(left)])
    order = np.concatenate([left, *(level.items for level in reversed(levels))])
    place = np.empty(n, np.int64)
    place[order] = np.arange(n)
    first = len(left)
    for level in reversed(levels):
        last, factor = first + len(level.items), level.factor
        arguments = (found, first, factor.indptr, place[level.left][factor.indices], factor.data)
        over_rows(add_rows_of, len(level.items), (0, first, *arguments))
        for row in range(first, last, SIDE):
            found[:first, row : min(row + SIDE, last)] = found[row : min(row + SIDE, last), :first].T
        over_rows(add_rows_of, len(level.items), (first, last, *arguments))
        found[np.arange(first, last), np.arange(first, last)] += level.scale
        first = last
    return found, order


def eliminated(matrix: Any) -> tuple[list[Level], Any, Int64]:
    """Levels in the order of elimination; the core that is left, sparse, and its items."""
    from scipy.sparse import diags

    from fedrec.maths.sparse_inverse_kernel import independent

    n = matrix.shape[0]
    current, left, levels = matrix.tocsr(), np.arange(n), []
    while len(left):
        degree = np.diff(current.indptr) - 1
        limit = WORTH * len(left) ** 2 / n
        if degree.min() > limit:
            break
        chosen = np.zeros(len(left), bool)
        most = int(min(limit, 2 * degree.min() + 8))
        independent(np.argsort(degree, kind="stable"), degree, most, current.indptr, current.indices, chosen)
        some, rest = np.flatnonzero(chosen), np.flatnonzero(~chosen)
        pivots = current.diagonal()[some]
        if not (pivots > 0).all():
            raise np.linalg.LinAlgError("the matrix is not positive definite")
        across = current[some][:, rest]
        factor = (diags(1 / pivots) @ across).tocsr()
        current = (current[rest][:, rest] - across.T @ factor).tocsr()
        levels.append(Level(left[some], 1 / pivots, factor, left[rest]))
        left = left[rest]
    return levels, current, left


def dense_inverse(matrix: NDArray[np.float64]) -> None:
    """Replace a symmetric positive definite matrix, of which only the upper triangle is read, by its inverse."""
    import torch  # its Cholesky is several times as fast as scipy's

    lower = torch.from_numpy(matrix).T  # column after column, as LAPACK wants it: worked on where it lies
    _, fault = torch.linalg.cholesky_ex(lower, out=(lower, torch.empty(0, dtype=torch.int32)))
    if fault:
        raise np.linalg.LinAlgError("the matrix is not positive definite")
    torch.cholesky_inverse(lower, out=lower)
