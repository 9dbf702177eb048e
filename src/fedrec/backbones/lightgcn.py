"""LightGCN: embeddings smoothed over the user-item graph (He et al., SIGIR 2020), for one graph at a time.

``e^(l+1) = D^-1/2 A D^-1/2 e^(l)`` for users and items alike, and the mean over layers 0 .. L (their Eq. 3 and 8).
The graph is a client's own, or everybody's for the centralised reference.
"""

from __future__ import annotations

import warnings
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from fedrec.backbones.tables import ItemTable
from fedrec.core.block import Block
from fedrec.core.messages import Float32
from fedrec.data.ragged import Int64, Ragged, offsets
from fedrec.maths.interaction_matrix import inverse_root, matrix, normalised

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
    """Scipy's matrix as torch's: in rows of 32-bit places on the CPU, whose product is several times faster there."""
    import torch

    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)  # that a layout is in beta, that nothing is checked
        if device == "cpu":
            rows = array.tocsr()
            return torch.sparse_csr_tensor(
                torch.from_numpy(rows.indptr.astype(np.int32)), torch.from_numpy(rows.indices.astype(np.int32)),
                torch.from_numpy(rows.data.astype(np.float32)), array.shape, check_invariants=False,
            )  # fmt: skip
        cells = array.tocoo()
        place = torch.from_numpy(np.stack([cells.row, cells.col]).astype(np.int64))
        value = torch.from_numpy(cells.data.astype(np.float32))
        # from scipy's rows in order: coalesced already
        return torch.sparse_coo_tensor(
            place, value, array.shape, device=device, is_coalesced=True, check_invariants=False
        )


def smoothed(lists: Ragged, users: Float32, table: Float32, layers: int) -> tuple[Float32, Float32]:
    """Users and items after convolution over the lists' graph, in numpy."""
    return convolved(normalised(matrix(lists, len(table))), users, table, layers)


def convolved(graph: Any, users: Float32, items: Float32, layers: int) -> tuple[Float32, Float32]:
    """Users and items after convolution over a normalised graph ``[users, items]``, in numpy."""
    back = graph.T.tocsr()
    total_u, total_i = users.copy(), items.copy()
    for _ in range(layers):
        users, items = np.asarray(graph @ items), np.asarray(back @ users)
        total_u += users
        total_i += items
    return total_u / np.float32(layers + 1), total_i / np.float32(layers + 1)


def own_graphs(lists: Ragged, users_at: Int64, rows_at: Int64, ids: NDArray[np.integer], n_items: int) -> Any:
    """Graphs of several clients as one block-diagonal ``[users, rows]``, normalised within each client.

    ``users_at``, ``rows_at``: where each client's users and rows begin; ``ids``: items of the rows, ascending
    within a client; all that a client's users have must be among them.
    """
    from scipy.sparse import csr_matrix

    clients = np.arange(len(users_at) - 1)
    owner = np.repeat(clients, np.diff(users_at))[lists.owners]  # client of each interaction
    place = np.repeat(clients, np.diff(rows_at)) * np.int64(n_items) + ids
    column = np.searchsorted(place, owner * np.int64(n_items) + lists.values)
    item_degrees = np.bincount(column, minlength=len(ids))
    value = inverse_root(lists.counts)[lists.owners] * inverse_root(item_degrees)[column]
    graph = csr_matrix((value.astype(np.float32), (lists.owners, column)), shape=(len(lists), len(ids)))
    graph.sort_indices()
    return graph


def graph_scores(block: Block, users: Float32, table: ItemTable, layers: int) -> Float32:
    """Scores ``[users, n_items]`` after convolution over each client's own graph.

    Convolution only divides an item outside the client's graph by the number of layers, so a client's table is
    convolved at the rows of its own items; the rest is the scores of the table as it is.
    """
    lists, m = block.train, np.int64(block.n_items)
    owned = np.unique(block.client_of_user[lists.owners] * m + lists.values)
    client, ids = np.divmod(owned, m)
    rows_at = offsets(np.bincount(client, minlength=block.n_clients))
    graph = own_graphs(lists, block.user_start, rows_at, ids, block.n_items)
    people, rows = convolved(graph, users, table.rows_of(client, ids), layers)
    scores = table.scores(people, block.client_of_user)
    scores /= np.float32(layers + 1)
    for one in range(block.n_clients):
        mine, here = slice(block.user_start[one], block.user_start[one + 1]), slice(rows_at[one], rows_at[one + 1])
        scores[mine, ids[here]] = people[mine] @ rows[here].T
    return scores
