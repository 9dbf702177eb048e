"""Graphs between clients: who is near whom, and what flows along the edges.

Server side. Dense ``[n, n]`` work is in torch (imported where it is used); nothing loops over pairs.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Literal

import numpy as np
from numpy.typing import NDArray

from fedrec.data.ragged import Int64

if TYPE_CHECKING:
    from torch import Tensor

Kind = Literal["nearest", "farthest"]


def cosines(tables: NDArray[np.float32], clients: Int64 | None = None, device: str = "cpu") -> Tensor:
    """Cosine similarity of whole tables ``[n, n]``, slice by slice of the tables."""
    import torch

    from fedrec.maths.composite import add_products, mirror, slices

    count = len(tables) if clients is None else len(clients)
    gram = torch.zeros((count, count), dtype=torch.float32, device=device)
    for _, part in slices(tables, clients, device, fresh=False):
        add_products(gram, part.reshape(count, -1))
    mirror(gram)
    lengths = gram.diagonal().clamp(min=1e-30).sqrt()
    return gram.div_(lengths[:, None]).div_(lengths[None, :]).clamp_(-1, 1)


def neighbourhoods(similarity: Tensor, kind: Kind, neighbours: int, threshold: float) -> Tensor:
    """Row-stochastic weights ``[n, n]``: every client the plain mean of its neighbours.

    ``kind="nearest"`` takes high similarity as closeness. ``kind="farthest"`` is what comes out when a cosine
    distance is taken for a similarity: the most different clients are chosen, oneself last of all.
    With ``neighbours`` > 0 the first so many; else all above ``threshold`` times the mean of the whole matrix. A
    client without any neighbour stays by itself.
    """
    import torch

    closeness = similarity if kind == "nearest" else 1 - similarity
    n = len(closeness)
    if neighbours:
        chosen = torch.zeros_like(closeness)
        chosen.scatter_(1, closeness.topk(min(neighbours, n), dim=1).indices, 1.0)
    else:
        chosen = (closeness > threshold * closeness.mean()).to(closeness.dtype)
    alone = chosen.sum(1) == 0
    chosen.diagonal()[alone] = 1.0
    return chosen / chosen.sum(1, keepdim=True)


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
