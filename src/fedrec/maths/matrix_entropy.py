"""Matrix cross-entropy in thin form, for FedIAR's server (Eq. 3-8 and 16).

    MCE(X, Y) = tr(-X log Y + Y)                                                                   (Eq. 3)

The sample view compares ``n x n`` matrices of rank at most d and M. None is formed: with the thin SVD of a
factor F of ``Y = F F^T``, ``F = U diag(s) R^T``,

    log(Y + gamma I) = log(gamma) I + U diag(log(1 + s^2 / gamma)) U^T,

so a trace or a product with a thin matrix costs ``O(n d^2)``.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from fedrec.core.fold import Float64


def centred_rows(table: NDArray[np.floating]) -> Float64:
    """``H_n Z``: every column loses its mean."""
    values = np.asarray(table, np.float64)
    return np.asarray(values - values.mean(0))


def centred_columns(table: NDArray[np.floating]) -> Float64:
    """``Z H_d``: every row loses its mean."""
    values = np.asarray(table, np.float64)
    return np.asarray(values - values.mean(1, keepdims=True))


def autocovariance(table: NDArray[np.floating]) -> Float64:
    """``C_g = Z^T H_n Z / n`` ``[d, d]`` (Eq. 4)."""
    centred = centred_rows(table)
    return centred.T @ centred / len(centred)


def dimension_loss(table: NDArray[np.floating], gamma: float) -> tuple[float, Float64]:
    """``L_d = MCE((1/d + gamma) I, C_g + gamma I)`` (Eq. 5) and its gradient ``[n, d]``.

    With the eigenpairs of C_g the gradient is ``2/n H Z (I - (1/d + gamma) (C_g + gamma I)^-1)``.
    """
    centred = centred_rows(table)
    n, d = centred.shape
    values, vectors = np.linalg.eigh(centred.T @ centred / n)
    values = np.maximum(values, 0.0) + gamma
    target = 1.0 / d + gamma
    loss = float(-target * np.log(values).sum() + values.sum())
    slope = (vectors * (1.0 - target / values)) @ vectors.T
    return loss, (2.0 / n) * centred @ slope


def total_coding_rate(table: NDArray[np.floating], gamma: float) -> float:
    """``TCR = 1/2 log det(I + C_g / gamma)`` with ``gamma = eps^2 / d`` (Eq. 6-7)."""
    values = np.maximum(np.linalg.eigvalsh(autocovariance(table)), 0.0)
    return float(0.5 * np.log1p(values / gamma).sum())


@dataclass(frozen=True)
class ThinLogarithm:
    """``log(F F^T + gamma I)`` of a thin factor F ``[n, k]``, as ``log(gamma) I + U diag(gain) U^T``."""

    basis: Float64  # [n, r] U
    gain: Float64  # [r] log(1 + s^2 / gamma)
    gamma: float
    trace: float
    """tr(F F^T + gamma I)."""

    @classmethod
    def of(cls, factor: NDArray[np.floating], gamma: float) -> ThinLogarithm:
        values = np.asarray(factor, np.float64)
        basis, lengths, _ = np.linalg.svd(values, full_matrices=False)
        return cls(basis, np.log1p(lengths**2 / gamma), gamma, float((lengths**2).sum() + gamma * len(values)))

    def times(self, thin: Float64) -> Float64:
        """``log(F F^T + gamma I) @ thin`` ``[n, k]``."""
        return np.asarray(np.log(self.gamma) * thin + self.basis @ (self.gain[:, None] * (self.basis.T @ thin)))


def centroids_of(table: NDArray[np.floating], cluster: NDArray[np.integer], count: int) -> Float64:
    """Mean rows of the clusters ``[count, d]``; zeros for an empty one."""
    total = np.zeros((count, table.shape[1]))
    np.add.at(total, cluster, np.asarray(table, np.float64))
    sizes = np.bincount(cluster, minlength=count)
    return total / np.maximum(sizes, 1)[:, None]


def sample_loss(
    table: NDArray[np.floating], cluster: NDArray[np.integer], count: int, gamma: float
) -> tuple[float, Float64]:
    """``L_n = MCE(Z H_d Z^T / d, V H_d V^T / d + gamma I)`` (Eq. 16) and its gradient ``[n, d]``.

    V holds the centroids of Z's clusters and is constant in the gradient, as in other clustering losses.
    Clusters share rows, so the thin SVD of V needs only ``M`` distinct rows: with ``V = A mu`` and cluster sizes
    N, ``V H = (A N^-1/2) (N^1/2 mu H)`` has an orthonormal left factor.
    """
    n, d = table.shape
    left = centred_columns(table)
    sizes = np.bincount(cluster, minlength=count)
    root = np.sqrt(np.maximum(sizes, 1))
    small = root[:, None] * centred_columns(centroids_of(table, cluster, count)) / np.sqrt(d)  # [M, d]
    within, lengths, _ = np.linalg.svd(small, full_matrices=False)
    basis = (within / root[:, None])[cluster]  # [n, r]
    logarithm = ThinLogarithm(basis, np.log1p(lengths**2 / gamma), gamma, float((lengths**2).sum() + gamma * n))
    turned = logarithm.times(left)
    loss = float(-(left * turned).sum() / d + logarithm.trace)
    # Z H_d and its image are both centred, so H_d changes nothing more
    return loss, (-2.0 / d) * centred_columns(turned)
