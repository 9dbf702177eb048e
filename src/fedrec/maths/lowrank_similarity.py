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

from fedrec.core.fold import Float64

Floating = NDArray[np.floating[Any]]
EPS = float(np.finfo(np.float64).eps)


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
        return _of_square(np.asarray(left, np.float64), rank)
    return _of_product(np.asarray(left, np.float64), np.asarray(right, np.float64), rank)


def _of_square(left: Float64, rank: int) -> Truncated:
    """``left V``, with ``left'left = V L V'``: singular vectors of ``left left'`` times the root of their values."""
    squares = left.T @ left
    values, basis = _largest(squares, rank)
    own = left @ basis
    own = np.pad(own * column_signs(own), ((0, 0), (0, rank - len(values))))
    return Truncated(own, own.copy(), _lost(values, float((squares**2).sum())))


def _of_product(left: Float64, right: Float64, rank: int) -> Truncated:
    """The singular vectors of ``left right'`` by products of the factors alone, ``[r, r]``.

    With ``left'left = V L V'`` the vectors on the left are ``left V L^-1/2 U``, where ``U S^2 U'`` is
    ``L^1/2 V' right'right V L^1/2``. A fourth of the time of two QR decompositions; squares cost half of the digits,
    of which float64 has enough for what is sent in float32: values below 1e-7 of the largest count as none.
    """
    weights, basis = _largest(left.T @ left, left.shape[1])
    to_left, to_right = basis / np.sqrt(weights), basis * np.sqrt(weights)
    squares = to_right.T @ (right.T @ right) @ to_right
    found, inner = _largest(squares, rank)
    values = np.sqrt(found)  # S
    own, other = left @ (to_left @ (inner * np.sqrt(values))), right @ (to_right @ (inner / np.sqrt(values)))
    signs, pad = column_signs(own), ((0, 0), (0, rank - len(values)))
    return Truncated(np.pad(own * signs, pad), np.pad(other * signs, pad), _lost(values, float(np.trace(squares))))


def _largest(squares: Float64, rank: int) -> tuple[Float64, Float64]:
    """The largest eigenvalues of a symmetric matrix and their vectors; none that is negative or made by rounding."""
    from scipy.linalg import eigh

    n = len(squares)
    if not n:
        return np.zeros(0), squares
    values, vectors = eigh(squares, subset_by_index=[max(0, n - rank), n - 1])
    real = values[::-1] > EPS * n * max(values[-1], 0.0)
    return values[::-1][real], vectors[:, ::-1][:, real]


def _lost(values: Float64, total: float) -> float:
    """What these singular values leave of a squared Frobenius norm, as a share of the norm."""
    return float(np.sqrt(max(0.0, 1.0 - float((values**2).sum()) / total))) if total else 0.0


def column_signs(vectors: Float64) -> Float64:
    """Signs that make the largest entry of each column positive, so that runs agree."""
    if not vectors.size:
        return np.ones(vectors.shape[1])
    signs = np.sign(vectors[np.abs(vectors).argmax(0), np.arange(vectors.shape[1])])
    return np.where(signs == 0, 1.0, signs)


def top_factors(similarity: Floating, rank: int) -> Float64:
    """``V_d L_d^1/2`` ``[m, rank]``: the nearest positive matrix of this rank is its product with itself.

    ``similarity`` ``[m, m]`` is symmetric; negative eigenvalues (noise) count as zero.
    """
    values, vectors = _largest(np.asarray(similarity, np.float64), rank)
    return np.pad(vectors * column_signs(vectors) * np.sqrt(values), ((0, 0), (0, rank - len(values))))


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
