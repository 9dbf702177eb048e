"""Rank-biased overlap of two lists (Webber et al., TOIS 2010), as Fed3CR's Figure 6 uses it."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

Float64 = NDArray[np.float64]


def rank_biased_overlap(left: NDArray[np.integer], right: NDArray[np.integer], p: float = 0.99) -> Float64:
    """RBO of lists ``[rows, depth]``, row by row: 1 for identical lists, 0 for disjoint ones.

    ``(1 - p) / (1 - p^k) sum_{t <= k} p^(t-1) |A_t and B_t| / t``: cut off at the depth k of the lists and scaled
    so that identical lists give 1.

    >>> float(rank_biased_overlap(np.array([[1, 2]]), np.array([[1, 2]]))[0])
    1.0
    """
    rows, depth = left.shape
    same = left[:, :, None] == right[:, None, :]  # [rows, depth, depth]
    # the pair (i, j) is in both lists from depth max(i, j) on
    place = np.maximum(np.arange(depth)[:, None], np.arange(depth)[None, :])
    new = np.zeros((rows, depth))
    for t in range(depth):
        new[:, t] = same[:, place == t].sum(1)
    agreement = np.cumsum(new, 1) / np.arange(1, depth + 1)
    weights = p ** np.arange(depth)
    return np.asarray((agreement * weights).sum(1) / weights.sum())


def top(scores: NDArray[np.floating], depth: int = 50) -> NDArray[np.int64]:
    """The ``depth`` best items of each row, best first; equal scores by item number."""
    depth = min(depth, scores.shape[1])
    return np.asarray(np.argsort(-scores, axis=1, kind="stable")[:, :depth], np.int64)
