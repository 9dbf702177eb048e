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


@dataclass(frozen=True)
class ItemWeights:
    """The item-to-item matrix B."""

    weights: Float32  # [n_items, n_items]


class EaseSettings(Settings):
    """Settings of EASE."""

    lam: float = Field(500.0, gt=0, description="L2 penalty lambda on the weights")


def ease_weights(cooccurrence: NDArray[np.float64], lam: float) -> Float32:
    """Steck's closed form: ``P = (X'X + lambda I)^-1``, ``B_ij = -P_ij / P_jj``, ``B_jj = 0`` (Eq. 8).

    ``cooccurrence`` is ``X'X`` ``[n_items, n_items]`` and is overwritten.
    """
    from scipy.linalg import lapack

    diagonal = np.diag_indices(len(cooccurrence))
    cooccurrence[diagonal] += lam
    factor, fault = lapack.dpotrf(cooccurrence, lower=0, overwrite_a=1)
    if fault:
        raise np.linalg.LinAlgError(f"X'X + {lam} I is not positive definite; a larger lam helps")
    inverse, _ = lapack.dpotri(factor, lower=0, overwrite_c=1)
    inverse = np.triu(inverse)
    inverse += np.triu(inverse, 1).T
    weights = inverse / -inverse[diagonal][None, :]
    weights[diagonal] = 0.0
    return np.asarray(weights, np.float32)


class Ease(Reference[ItemWeights]):
    """Linear autoencoder with zero diagonal: the strongest simple centralised model here."""

    name = "ease"
    Settings = EaseSettings
    card = collected("EASE: linear item-to-item weights in closed form; a centralised ceiling", "Steck, WWW 2019")

    def start(self, data: Central, keys: Keys) -> ItemWeights:
        return ItemWeights(np.zeros((0, 0), np.float32))

    def step(self, state: ItemWeights, data: Central, keys: Keys) -> tuple[ItemWeights, float]:
        counts = matrix(data.train, data.world.n_items, np.float64)
        gram = np.asfortranarray((counts.T @ counts).toarray())
        return ItemWeights(ease_weights(gram, self.settings.lam)), 0.0

    def score(self, state: ItemWeights, data: Central, users: Int64) -> Float32:
        return np.asarray(matrix(data.train.take(users), data.world.n_items) @ state.weights)
