"""LightGCN: embeddings smoothed over the user-item graph (He et al., SIGIR 2020), for one graph at a time.

``e^(l+1) = D^-1/2 A D^-1/2 e^(l)`` for users and items alike, and the mean over layers 0 .. L (their Eq. 3 and 8).
The graph is a client's own, or everybody's for the centralised reference.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from fedrec.core.messages import Float32
from fedrec.data.ragged import Ragged
from fedrec.maths.interaction_matrix import matrix, normalised

if TYPE_CHECKING:
    from torch import Tensor


@dataclass(frozen=True)
class Graph:
    """A bipartite graph between some users and some items, degree-normalised, as torch's sparse matrices."""

    forward: Any  # [users, items]
    backward: Any  # [items, users]

    @classmethod
    def of(cls, normal: Any, device: str = "cpu") -> Graph:
        """From scipy's ``[users, items]``."""
        return cls(_sparse(normal, device), _sparse(normal.T.tocsr(), device))

    def propagate(self, users: Tensor, items: Tensor, layers: int) -> tuple[Tensor, Tensor]:
        """The mean over layers of users ``[users, d]`` and items ``[items, d]``."""
        total_u, total_i = users, items
        for _ in range(layers):
            users, items = self.forward @ items, self.backward @ users
            total_u, total_i = total_u + users, total_i + items
        return total_u / (layers + 1), total_i / (layers + 1)


def _sparse(array: Any, device: str) -> Any:
    import torch

    found = array.tocoo()
    place = torch.from_numpy(np.stack([found.row, found.col]).astype(np.int64))
    value = torch.from_numpy(found.data.astype(np.float32))
    # from scipy's rows in order: coalesced already, and nothing to check
    return torch.sparse_coo_tensor(place, value, array.shape, device=device, is_coalesced=True, check_invariants=False)


def smoothed(lists: Ragged, users: Float32, table: Float32, layers: int) -> tuple[Float32, Float32]:
    """Users and items after convolution over the lists' graph, in numpy."""
    graph = normalised(matrix(lists, len(table)))
    back = graph.T.tocsr()
    total_u, total_i = users.copy(), table.copy()
    for _ in range(layers):
        users, table = np.asarray(graph @ table), np.asarray(back @ users)
        total_u, total_i = total_u + users, total_i + table
    return total_u / np.float32(layers + 1), total_i / np.float32(layers + 1)
