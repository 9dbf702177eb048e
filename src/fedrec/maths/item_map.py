"""Item features of an encoder as points in the plane (FedDAE, Figure 3): t-SNE of the product of its layers."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from fedrec.core.messages import Float32


def item_features(table: Float32, mid: Float32, out: Float32) -> Float32:
    """``[items, d]``: the weights of all layers multiplied, up to the mean of the latent variable.

    ``table`` ``[items, 3d]``; ``mid`` and ``out`` are layers whose last row is the bias, which is left out.
    """
    return np.asarray(table @ mid[:-1] @ out[:-1, : out.shape[1] // 2], np.float32)


def item_map(features: Float32, *, seed: int = 0, perplexity: float = 30.0) -> NDArray[np.float64]:
    """Coordinates ``[items, 2]`` in the unit square, by t-SNE."""
    from sklearn.manifold import TSNE

    bounded = min(perplexity, max(1.0, (len(features) - 1) / 3))
    made: Any = TSNE(2, perplexity=bounded, init="pca", random_state=seed).fit_transform(features)
    low, high = made.min(0), made.max(0)
    return np.asarray((made - low) / np.where(high > low, high - low, 1.0), np.float64)


def combinations(shared: Float32, own: Float32, weights: Float32) -> dict[str, Float32]:
    """The four columns of Figure 3 for one user, features ``[items, d]`` each.

    ``shared`` are those of the global encoder, ``own`` those of the local one, ``weights`` the gate's w_u1 and w_u2.
    """
    if own.shape != shared.shape:
        raise ValueError(f"features of {own.shape} and {shared.shape}: give both over all items")
    half = np.float32(0.5)
    return {
        "global": shared,
        "local": own,
        "average": half * (shared + own),
        "weighted": weights[0] * shared + weights[1] * own,
    }


def apartness(features: Float32, chosen: NDArray[np.bool_]) -> float:
    """How far some items stand apart from the others: the mean silhouette, from -1 over 0 (mixed) to 1 (two clusters).

    >>> apartness(np.array([[0.0], [0.1], [9.0], [9.1]], np.float32), np.array([True, True, False, False])) > 0.9
    True
    """
    from sklearn.metrics import silhouette_score

    if chosen.all() or not chosen.any():
        return 0.0
    return float(silhouette_score(features, chosen))
