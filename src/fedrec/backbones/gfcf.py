"""GF-CF as a client holds it: the filter of its own users' graph, kept as two thin factors.

Shen et al., CIKM 2021: ``F = R~'R~ + alpha D^-1/2 V V' D^1/2`` with the degree-normalised interactions R~, its
top singular vectors V and item degrees D, all of the client's own. ``F = left right'`` on the items the client
has, zero elsewhere.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fedrec.core.fold import Float64
from fedrec.core.messages import Float32
from fedrec.data.ragged import Ragged
from fedrec.maths.interaction_matrix import inverse_root, matrix


@dataclass(frozen=True)
class LocalFilter:
    """``F[items][:, items] = left right'``."""

    items: NDArray[np.int64]  # [s] the client's items, ascending
    left: Float64  # [s, r]
    right: Float64  # [s, r]

    def rows(self, n_items: int) -> Float32:
        """The filter's rows of the client's items ``[s, n_items]``."""
        found = np.zeros((len(self.items), n_items), np.float32)
        found[:, self.items] = self.left @ self.right.T
        return found

    def scores(self, histories: Any) -> Float32:
        """``histories @ F`` for sparse ``[users, n_items]``."""
        found = np.zeros(histories.shape, np.float32)
        found[:, self.items] = (histories[:, self.items] @ self.left) @ self.right.T
        return found


def local_filter(lists: Ragged, n_items: int, k: int, alpha: float) -> LocalFilter:
    """The filter of some users' graph: ``k`` singular vectors (fewer where the graph has fewer), weight ``alpha``."""
    items = np.unique(lists.values).astype(np.int64)
    graph = np.asarray(matrix(lists, n_items, np.float64)[:, items].todense())  # [users, s]: only what is there
    degrees = graph.sum(0)
    normal = graph * inverse_root(graph.sum(1))[:, None] * inverse_root(degrees)[None, :]
    _, values, vectors = np.linalg.svd(normal, full_matrices=False)
    real = values > 1e-9 * values.max(initial=0.0)
    smooth = vectors[real][:k].T  # [s, k] V
    root = np.sqrt(degrees)[:, None]
    left = np.concatenate([normal.T, alpha * smooth / root], axis=1)
    right = np.concatenate([normal.T, smooth * root], axis=1)
    return LocalFilter(items, left, right)
