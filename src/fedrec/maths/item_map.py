"""Item features of an encoder as points in the plane (FedDAE, Figure 3): t-SNE of the product of its layers."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

Float32 = NDArray[np.float32]


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


def dual_features(
    shared: Float32, own: Float32, ids: NDArray[np.integer], weights: tuple[float, float]
) -> dict[str, Float32]:
    """The four columns of Figure 3 for one user, over all items.

    ``shared`` ``[items, d]`` are features of the global encoder. ``own`` ``[items, d]`` are those of the local
    encoder, of which only the rows ``ids`` were ever trained; ``weights`` are the gate's w_u1 and w_u2.
    """
    if own.shape != shared.shape:
        raise ValueError(f"features of {own.shape} and {shared.shape}: give both over all items")
    interacted = np.zeros(len(shared), bool)
    interacted[ids] = True
    return {
        "global": shared,
        "local": own,
        "average": 0.5 * (shared + own),
        "weighted": (weights[0] * shared + weights[1] * own).astype(np.float32),
        "interacted": interacted.astype(np.float32),
    }
