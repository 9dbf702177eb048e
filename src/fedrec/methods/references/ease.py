"""EASE: a linear item-to-item model with a closed form.

Steck, "Embarrassingly shallow autoencoders for sparse data", WWW 2019.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from pydantic import Field

from fedrec.core.messages import Float32
from fedrec.core.method import Keys
from fedrec.core.reference import Central, Reference, collected
from fedrec.core.settings import Settings
from fedrec.data.ragged import Int64
from fedrec.extras import installed
from fedrec.maths.interaction_matrix import matrix

ROWS = 256
"""Rows of the weights that are made at once."""
SPARSE = 0.1
"""Share of pairs that occur below which the sparse inverse is tried."""


@dataclass(frozen=True)
class ItemWeights:
    """The item-to-item matrix B."""

    weights: Float32  # [n_items, n_items]


class EaseSettings(Settings):
    lam: float = Field(500.0, gt=0, description="L2 penalty lambda on the weights")


def ease_weights(cooccurrence: Any, lam: float) -> Float32:
    """Steck's closed form: ``P = (X'X + lambda I)^-1``, ``B_ij = -P_ij / P_jj``, ``B_jj = 0`` (Eq. 8).

    ``cooccurrence`` is ``X'X`` ``[n_items, n_items]``, sparse, or an array of which only the upper triangle is read and
    which is overwritten. Nothing else of its size is needed but the inverse and the weights.
    """
    from scipy.sparse import identity, issparse

    from fedrec.maths.sparse_inverse import dense_inverse, inverse

    n = cooccurrence.shape[0]
    if issparse(cooccurrence) and not installed("numba"):  # its elimination is a kernel
        cooccurrence = cooccurrence.toarray()
    try:
        if issparse(cooccurrence):
            found, order = inverse(cooccurrence + lam * identity(n, format="csr"))
        else:
            found, order = cooccurrence, np.arange(n)
            found[order, order] += lam
            dense_inverse(found)
    except np.linalg.LinAlgError as error:
        raise np.linalg.LinAlgError(f"X'X + {lam} I is not positive definite; a larger lam helps") from error
    scale = -found.diagonal()
    weights = np.empty((n, n), np.float32)
    for first in range(0, n, ROWS):
        rows = slice(first, first + ROWS)
        weights[np.ix_(order[rows], order)] = found[rows] / scale
    np.fill_diagonal(weights, 0.0)
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
        gram = counts.T @ counts
        few = gram.nnz < SPARSE * gram.shape[0] ** 2
        return ItemWeights(ease_weights(gram if few else gram.toarray(), self.settings.lam)), 0.0

    def score(self, state: ItemWeights, data: Central, users: Int64) -> Float32:
        return np.asarray(matrix(data.train.take(users), data.world.n_items) @ state.weights)
