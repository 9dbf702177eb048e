"""EASE: a linear item-to-item model with a closed form.

Steck, "Embarrassingly shallow autoencoders for sparse data", WWW 2019.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from pydantic import Field

from fedrec.core.messages import Float32
from fedrec.core.method import Keys
from fedrec.core.reference import Central, Reference, collected
from fedrec.core.settings import Settings
from fedrec.data.ragged import Int64
from fedrec.maths.interaction_matrix import matrix


ROWS = 256
"""Rows of the weights that are made at once."""


@dataclass(frozen=True)
class ItemWeights:
    """The item-to-item matrix B."""

    weights: Float32  # [n_items, n_items]


class EaseSettings(Settings):
    """Settings of EASE."""

    lam: float = Field(500.0, gt=0, description="L2 penalty lambda on the weights")


def ease_weights(cooccurrence: NDArray[np.float64], lam: float) -> Float32:
    """Steck's closed form: ``P = (X'X + lambda I)^-1``, ``B_ij = -P_ij / P_jj``, ``B_jj = 0`` (Eq. 8).

    ``cooccurrence`` is ``X'X`` ``[n_items, n_items]``, of which only the upper triangle is read; it is overwritten, and
    nothing else of its size but the weights is needed.
    """
    import torch  # its Cholesky is several times as fast as scipy's

    n = len(cooccurrence)
    diagonal = np.diag_indices(n)
    cooccurrence[diagonal] += lam
    lower = torch.from_numpy(cooccurrence).T  # column after column, as LAPACK wants it: worked on where it lies
    _, fault = torch.linalg.cholesky_ex(lower, out=(lower, torch.empty(0, dtype=torch.int32)))
    if fault:
        raise np.linalg.LinAlgError(f"X'X + {lam} I is not positive definite; a larger lam helps")
    torch.cholesky_inverse(lower, out=lower)  # both triangles of P
    scale = -cooccurrence[diagonal]
    weights = np.empty((n, n), np.float32)
    for first in range(0, n, ROWS):
        rows = slice(first, first + ROWS)
        weights[rows] = cooccurrence[rows] / scale
    weights[diagonal] = 0.0
    return weights


class Ease(Reference[ItemWeights]):
    """Linear autoencoder with zero diagonal: the strongest simple centralised model here."""

    name = "ease"
    Settings = EaseSettings
    card = collected("EASE: linear item-to-item weights in closed form; a centralised ceiling", "Steck, WWW 2019")

    def start(self, data: Central, keys: Keys) -> ItemWeights:
        return ItemWeights(np.zeros((0, 0), np.float32))

    def step(self, state: ItemWeights, data: Central, keys: Keys) -> tuple[ItemWeights, float]:
        counts = matrix(data.train, data.world.n_items, np.float64)
        gram = (counts.T @ counts).toarray()
        return ItemWeights(ease_weights(gram, self.settings.lam)), 0.0

    def score(self, state: ItemWeights, data: Central, users: Int64) -> Float32:
        return np.asarray(matrix(data.train.take(users), data.world.n_items) @ state.weights)
