"""Item-item matrices as products of thin factors: truncated, measured, and added up without building any.

FedCIA section 5.4.2: a client sends the top L singular values and vectors of its similarity matrix. A matrix
is ``left right'`` (``left left'`` where it is symmetric and positive); everything is worked out in the thin
factors, so that nothing of size ``m x m`` exists.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

Float64 = NDArray[np.float64]
Floating = NDArray[np.floating[Any]]


@dataclass(frozen=True)
class Truncated:
    """The nearest matrix of rank L, ``left right'``, and how much of the Frobenius norm was lost (a share)."""

    left: Float64  # [m, L] singular vectors times the root of their values
    right: Float64  # [m, L]
    lost: float


def truncated(left: Floating, right: Floating | None, rank: int) -> Truncated:
    """Eckart-Young on factors ``[m, r]``; without ``right`` the matrix is ``left left'``.

    Columns beyond the matrix' own rank are zero.
    """
    if right is None:
        vectors, roots, _ = np.linalg.svd(np.asarray(left, np.float64), full_matrices=False)
        values, other = roots**2, vectors
    else:
        basis_l, small_l = np.linalg.qr(np.asarray(left, np.float64))
        basis_r, small_r = np.linalg.qr(np.asarray(right, np.float64))
        inner, values, outer = np.linalg.svd(small_l @ small_r.T)
        vectors, other = basis_l @ inner, basis_r @ outer.T
    return _cut(vectors, values, other, rank)


def _cut(vectors: Float64, values: Float64, other: Float64, rank: int) -> Truncated:
    total = float((values**2).sum())
    lost = float(np.sqrt((values[rank:] ** 2).sum() / total)) if total else 0.0
    kept = np.sqrt(values[:rank])
    signs = _signs(vectors[:, :rank])
    pad = ((0, 0), (0, max(0, rank - len(kept))))
    return Truncated(np.pad(vectors[:, :rank] * kept * signs, pad), np.pad(other[:, :rank] * kept * signs, pad), lost)


def _signs(vectors: Float64) -> Float64:
    """Signs that make the largest entry of each column positive, so that runs agree."""
    if not vectors.size:
        return np.ones(vectors.shape[1])
    signs = np.sign(vectors[np.abs(vectors).argmax(0), np.arange(vectors.shape[1])])
    return np.where(signs == 0, 1.0, signs)


def top_factors(similarity: Floating, rank: int) -> Float64:
    """``V_d L_d^1/2`` ``[m, rank]``: the nearest positive matrix of this rank is its product with itself.

    ``similarity`` ``[m, m]`` is symmetric; negative eigenvalues (noise) count as zero.
    """
    from scipy.linalg import eigh

    m = len(similarity)
    rank_here = min(rank, m)
    values, vectors = eigh(similarity, subset_by_index=[m - rank_here, m - 1], check_finite=False)
    values, vectors = values[::-1], vectors[:, ::-1]
    factors = vectors * _signs(vectors) * np.sqrt(np.maximum(values, 0.0))
    return np.pad(factors, ((0, 0), (0, rank - rank_here)))


@dataclass
class FactoredSum:
    """A running sum of ``left right'`` (or ``left left'``) in ``rank`` columns, whatever is added.

    Additions are kept side by side and brought back to ``rank`` columns when there are more than three times
    as many. What that loses is bounded by the singular values beyond ``rank``. Additions come one client at a
    time, so that the result does not depend on the size of blocks.
    """

    n_items: int
    rank: int
    symmetric: bool
    _left: list[Float64] = field(default_factory=list)
    _right: list[Float64] = field(default_factory=list)
    _columns: int = 0

    def add(self, left: Floating, right: Floating | None = None) -> None:
        """Add one client's factors ``[m, L]``; columns of zeros (a client of lower rank) take no room."""
        real = left.any(axis=0)
        self._left.append(np.asarray(left[:, real], np.float64))
        if not self.symmetric:
            assert right is not None
            self._right.append(np.asarray(right[:, real], np.float64))
        self._columns += int(real.sum())
        if self._columns > 3 * self.rank:
            found = self.result()
            self._left, self._right, self._columns = [found.left], [found.right], self.rank

    def result(self) -> Truncated:
        """The sum in ``rank`` columns."""
        if not self._columns:
            zero = np.zeros((self.n_items, self.rank))
            return Truncated(zero, zero.copy(), 0.0)
        left = np.concatenate(self._left, axis=1)
        return truncated(left, None if self.symmetric else np.concatenate(self._right, axis=1), self.rank)
