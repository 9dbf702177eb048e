"""EASE from a few eigenpairs: nothing of size items x items is built.

Steck, "Embarrassingly shallow autoencoders for sparse data" (WWW 2019): ``P = (X'X + lambda I)^-1`` and
``B_ij = -P_ij / P_jj`` off the diagonal. Here ``X'X`` is ``F E F' + R``: ``F`` ``[m, k]`` and ``E`` come from
eigenpairs, R is a diagonal (zero, or what the eigenpairs leave of the item counts). With ``T = R + lambda I`` the
identity of Woodbury gives

    P = T^-1 - Z Z',   Z = T^-1 F (E^-1 + F' T^-1 F)^-1/2,   hence   B_ij = (Z Z')_ij / (1 / T_jj - |z_j|^2).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fedrec.core.fold import Float64
from fedrec.core.messages import Float32
from fedrec.maths.thin_filter import filtered

SMALLEST = 1e-6
"""The least that a diagonal entry of P may be of ``1 / T_jj``: noise in the eigenpairs can bring it below zero."""


@dataclass(frozen=True)
class ThinEase:
    """``B = Z Z' diag(into)`` without its diagonal."""

    factors: Float32  # [m, k] Z
    into: Float32  # [m] 1 / P_jj

    @property
    def writes(self) -> Float32:
        """``diag(into) Z`` ``[m, k]``."""
        return self.factors * self.into[:, None]

    @property
    def itself(self) -> Float32:
        """``[m]`` the diagonal of ``Z Z' diag(into)``, which does not count."""
        return np.asarray((self.factors**2).sum(1) * self.into)

    def scores(self, histories: Any) -> Float32:
        """``X B`` for sparse histories ``[users, m]``."""
        return filtered(histories, self.factors, self.writes, self.itself)


def thin_ease(factors: NDArray[Any], values: NDArray[Any], lam: float, counts: NDArray[Any] | None = None) -> ThinEase:
    """EASE with penalty ``lam`` from ``X'X = F diag(values) F' + R``.

    ``counts`` ``[m]`` is the diagonal of ``X'X``: R is then what ``F E F'`` leaves of it, else zero.
    """
    known = np.asarray(factors, np.float64)
    sizes = np.maximum(np.asarray(values, np.float64), 0.0)
    kept = np.full(len(known), lam)  # T
    if counts is not None:
        kept += np.maximum(counts - known**2 @ sizes, 0.0)
    weighed = known * np.sqrt(sizes)  # F E^1/2
    inner = np.eye(len(sizes)) + weighed.T @ (weighed / kept[:, None])  # E^1/2 (E^-1 + F' T^-1 F) E^1/2
    try:
        found = np.linalg.solve(np.linalg.cholesky(inner), (weighed / kept[:, None]).T).T  # Z
    except np.linalg.LinAlgError:  # values so large that rounding leaves nothing of the identity
        found = _without_squares(weighed, kept)
    left = np.maximum(1.0 / kept - (found**2).sum(1), SMALLEST / kept)  # P_jj
    return ThinEase(found.astype(np.float32), (1.0 / left).astype(np.float32))


def _without_squares(weighed: Float64, kept: Float64) -> Float64:
    """``Z`` from singular values ``U S V' = T^-1/2 F E^1/2``: ``Z = T^-1/2 U S (1 + S^2)^-1/2``, at any size."""
    root = 1.0 / np.sqrt(kept)
    directions, sizes, _ = np.linalg.svd(weighed * root[:, None], full_matrices=False)
    return np.asarray(root[:, None] * directions * (sizes / np.hypot(1.0, sizes)))
