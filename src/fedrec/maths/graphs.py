"""Graphs between clients: who is near whom, and what flows along the edges.

Server side. On the processor without torch, which would take more memory than the tables of many a run; on a device
with it. Nothing loops over pairs.
"""

from __future__ import annotations

from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from fedrec.core import disk_array
from fedrec.core.messages import Float32
from fedrec.data.ragged import Int64
from fedrec.maths.gram import SPARSE, gram, stripes

Kind = Literal["nearest", "farthest"]


def cosines(tables: Float32, clients: Int64 | None = None, device: str = "cpu") -> Float32:
    """Cosine similarity of whole tables ``[n, n]``, slice by slice of the tables."""
    if device == "cpu":
        products = gram(tables, clients)
    else:
        from fedrec.maths import composite

        products = composite.products(tables, clients, device).cpu().numpy()
    lengths = np.sqrt(np.maximum(products.diagonal(), 1e-30))
    products /= lengths[:, None]
    products /= lengths[None, :]
    return np.clip(products, -1, 1, out=products)


def neighbourhoods(similarity: Float32, kind: Kind, neighbours: int, threshold: float) -> Float32:
    """Row-stochastic weights ``[n, n]``: every client the plain mean of its neighbours.

    ``kind="nearest"`` takes high similarity as closeness. ``kind="farthest"`` is what comes out when a cosine
    distance is taken for a similarity: the most different clients are chosen, oneself last of all.
    With ``neighbours`` > 0 the first so many; else all above ``threshold`` times the mean of the whole matrix. A
    client without any neighbour stays by itself.
    """
    closeness = similarity if kind == "nearest" else 1 - similarity
    n = len(closeness)
    if neighbours:
        chosen = np.zeros((n, n), np.float32)
        count = min(neighbours, n)
        np.put_along_axis(chosen, np.argpartition(closeness, n - count, axis=1)[:, n - count :], 1.0, axis=1)
    else:
        chosen = (closeness > threshold * closeness.mean(dtype=np.float64)).astype(np.float32)
    alone = np.flatnonzero(chosen.sum(1) == 0)
    chosen[alone, alone] = 1.0
    chosen /= chosen.sum(1, keepdims=True)
    return chosen


def pass_along(tables: Float32, weights: Float32, clients: Int64 | None = None, device: str = "cpu") -> None:
    """``Q_u = sum_v w_uv Q_v`` for the tables of the clients, in place; few weights or a device: in torch."""
    if device != "cpu" or np.count_nonzero(weights) < SPARSE * weights.size:
        from fedrec.maths.composite import mix

        mix(tables, weights, clients, out=tables, device=device)
        return
    for place, part in stripes(tables, clients):
        mixed = (weights @ part).reshape(len(part), -1, tables.shape[2])
        disk_array.put_columns(tables, place, clients, mixed)


def smoothed(points: NDArray[np.floating], neighbours: int, layers: int) -> NDArray[np.float64]:
    """Points after ``layers`` steps of LightGCN's propagation on the graph of nearest neighbours.

    ``e_(l+1) = A e_l`` with A row-normalised over the ``neighbours`` nearest points; the result is the mean of
    ``e_0 .. e_layers``.
    """
    values = np.asarray(points, np.float64)
    count = min(neighbours, len(values) - 1)
    if layers == 0 or count < 1:
        return values
    from sklearn.neighbors import kneighbors_graph

    graph: Any = kneighbors_graph(values, count, mode="connectivity", include_self=False) / count
    total, current = values.copy(), values
    for _ in range(layers):
        current = graph @ current
        total += current
    return np.asarray(total / (layers + 1))
