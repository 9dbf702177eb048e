"""GF-CF: graph filtering, a linear filter and an ideal low-pass filter, without training.

Shen et al., "How powerful is graph convolution for recommendation?", CIKM 2021.
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
from fedrec.keyed import U64
from fedrec.maths.interaction_matrix import inverse_root, matrix, normalised


@dataclass(frozen=True)
class GraphFilter:
    """The two filters; the linear one as a matrix for catalogues up to ``DENSE_ITEMS``, else factored."""

    vectors: Float32  # [n_items, k] top right singular vectors V of the normalised interactions
    item_degrees: Float32  # [n_items]
    linear: Float32 | None = None  # [n_items, n_items] R~'R~


DENSE_ITEMS = 8192
"""Up to this many items ``R~'R~`` is kept as a matrix: it is far faster to score with."""


class GfCfSettings(Settings):
    k: int = Field(64, ge=1, description="singular vectors of the ideal low-pass filter")
    alpha: float = Field(1.0, ge=0, description="weight of the ideal low-pass filter beside the linear one")


def top_singular_vectors(interactions: Any, k: int, seed: int = 0) -> Float32:
    """Top right singular vectors ``[n_items, k]`` of a sparse matrix, signs fixed so that runs agree."""
    from scipy.sparse.linalg import svds

    limit = min(interactions.shape)
    start = np.random.default_rng(seed).standard_normal(limit)
    if k < limit - 1:
        vectors = svds(interactions.astype(np.float64), k=k, v0=start, return_singular_vectors="vh")[2]
        vectors = vectors[::-1]  # svds gives the smallest first
    else:
        vectors = np.linalg.svd(interactions.toarray(), full_matrices=False)[2][:k]
    largest = np.abs(vectors).argmax(1)
    signs = np.sign(vectors[np.arange(len(vectors)), largest])
    return np.ascontiguousarray((vectors * signs[:, None]).T, np.float32)


class GfCf(Reference[GraphFilter]):
    """Scores ``r (R~'R~ + alpha D^-1/2 V V' D^1/2)``: one-hop similarity plus a low-pass filter."""

    name = "gfcf"
    Settings = GfCfSettings
    card = collected("GF-CF: graph filters without training; a centralised ceiling", "Shen et al., CIKM 2021")

    def start(self, data: Central, keys: Keys) -> GraphFilter:
        return GraphFilter(np.zeros((data.world.n_items, 0), np.float32), np.zeros(data.world.n_items, np.float32))

    def step(self, state: GraphFilter, data: Central, keys: Keys) -> tuple[GraphFilter, float]:
        counts = matrix(data.train, data.world.n_items, np.float64)
        k = min(self.settings.k, min(counts.shape))
        smooth = normalised(counts)
        vectors = top_singular_vectors(smooth, k, seed=keys.seed)
        degrees = np.asarray(counts.sum(0)).ravel().astype(np.float32)
        small = data.world.n_items <= DENSE_ITEMS
        linear = np.asarray((smooth.T @ smooth).toarray(), np.float32) if small else None
        return GraphFilter(vectors, degrees, linear), 0.0

    def score(self, state: GraphFilter, data: Central, users: Int64) -> Float32:
        return self._filtered(state, data, matrix(data.train.take(users), data.world.n_items))

    def score_new(self, state: GraphFilter, data: Central, new: Central, users: U64, keys: Keys) -> Float32:
        return self._filtered(state, data, matrix(new.train, data.world.n_items))

    def _filtered(self, state: GraphFilter, data: Central, asked: Any) -> Float32:
        if state.linear is not None:
            scores = np.asarray(asked @ state.linear, np.float32)
        else:
            everyone = normalised(matrix(data.train, data.world.n_items), state.item_degrees)
            scores = np.asarray(((asked @ everyone.T) @ everyone).toarray(), np.float32)
        root = inverse_root(state.item_degrees).astype(np.float32)
        if self.settings.alpha:
            smooth = (asked.multiply(root[None, :]).tocsr() @ state.vectors) @ state.vectors.T
            back = np.sqrt(state.item_degrees)
            scores += self.settings.alpha * smooth * back[None, :]
        return scores
