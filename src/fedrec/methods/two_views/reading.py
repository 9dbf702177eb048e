"""Reading clients with two views: transfer matrices, fused tables, scores, and how the two views agree."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
from numpy.typing import NDArray

from fedrec.backbones.base import Backbone
from fedrec.backbones.tables import ItemTable
from fedrec.core import wire
from fedrec.core.block import Block
from fedrec.core.messages import Float32, Rows
from fedrec.data.ragged import Int64
from fedrec.methods.two_views.generator import MATRIX, generate
from fedrec.methods.two_views.settings import LocalViews, TwoViewPrivate

if TYPE_CHECKING:
    from fedrec.methods.two_views.step import Transfer

FEW = 32
"""Clients whose generators are put together at a time."""


@dataclass(frozen=True)
class Reader:
    """The clients of a block with what they keep and what they hold."""

    transfer: Transfer
    backbone: Backbone
    private: TwoViewPrivate
    model: LocalViews
    block: Block

    @staticmethod
    def of(method: Any, private: TwoViewPrivate, model: LocalViews, block: Block) -> Reader:
        return Reader(method.settings.transfer, method.backbone, private, model, block)

    @cached_property
    def matrices(self) -> Float32 | None:
        """W of every client ``[clients, d, d]`` (Eq. 9-10), None where it is the identity."""
        if self.transfer == "none":
            return None
        model, clients = self.model, self.block.n_clients
        networks, own = model.networks, model.network_changes
        if self.transfer != "ace":
            matrix = networks[MATRIX] + own[MATRIX] if MATRIX in own else networks[MATRIX]
            return np.asarray(np.broadcast_to(matrix, (clients, *matrix.shape[-2:])))
        import torch

        views = [prototypes(self.block, model.items), prototypes(self.block, self.private.tables)]
        if model.changes is not None:
            views[0] += prototypes(self.block, wire.whole_tables(model.changes))
        inputs = torch.from_numpy(np.concatenate(views, 1)[:, None])
        names = [name for name in networks if name.startswith("transfer_")]
        dim = model.items.shape[1]
        found = np.empty((clients, dim, dim), np.float32)
        with torch.no_grad():  # few clients at a time: a generator is larger than a table
            for few in range(0, clients, FEW):
                part = slice(few, few + FEW)
                layers = {n: torch.from_numpy(networks[n] + own[n][part] if n in own else networks[n]) for n in names}
                found[part] = generate(inputs[part], layers)[0].numpy()
        return found

    def views(self, client: int) -> tuple[Float32, Float32]:
        """One client's enhanced consensus C^E (Eq. 11) and personal table V, ``[n_items, d]`` each."""
        changes = self.model.changes
        consensus = self.model.items if changes is None else self.model.items + wire.whole_tables(changes)[client]
        personal = self.private.tables[client]
        if self.matrices is not None:
            turn = self.matrices[client].T
            consensus = consensus @ turn
            if self.transfer == "unified":
                personal = personal @ turn
        return consensus, personal

    def fused(self, client: int) -> Float32:
        """One client's fused table V^F ``[n_items, d]`` (Eq. 12)."""
        consensus, personal = self.views(client)
        return consensus + personal

    def turned_back(self, view: Literal["shared", "private"]) -> Float32:
        """User vectors that score a view's plain table as ``u`` scores the turned one: u . (W c) = (W^T u) . c."""
        if self.matrices is None or (view == "private" and self.transfer != "unified"):
            return self.private.users
        own = self.matrices[self.block.client_of_user]
        return np.asarray(np.einsum("ud,udk->uk", self.private.users, own), np.float32)

    def scores(self) -> Float32:
        """Scores ``[users, n_items]`` before the sigmoid (Eq. 13)."""
        if self.backbone.kernel is None or self.transfer == "unified":
            return self._through_fused_tables()
        owners, private = self.block.client_of_user, self.private
        scores = enlarged(self.model.items, self.model.changes, self.turned_back("shared"), owners)
        add_products(scores, private.tables, private.users, owners)
        scores += private.bias[:, None]
        return scores

    def _through_fused_tables(self) -> Float32:
        """For scorers that are not linear in the item, and where both views are turned."""
        block, private, moved = self.block, self.private, self.model.network_changes
        result = np.empty((block.n_users, block.n_items), np.float32)
        layers = {name: array for name, array in self.model.networks.items() if not name.startswith("transfer_")}
        for client in range(block.n_clients):
            own = slice(block.user_start[client], block.user_start[client + 1])
            mine = {name: array + moved[name][client] if name in moved else array for name, array in layers.items()}
            if self.backbone.kernel == "affine":
                mine["bias"] = private.bias[own]
            zeros = np.zeros(own.stop - own.start, np.int64)
            result[own] = self.backbone.scores(private.users[own], self.fused(client), mine or None, zeros)
        return result

    def overlap(self, depth: int = 50, p: float = 0.99) -> NDArray[np.float64]:
        """Rank-biased overlap of each user's top lists in the two views ``[users]`` (Figure 6)."""
        from fedrec.maths.rank_overlap import rank_biased_overlap, top

        found = np.zeros(self.block.n_users)
        for user, client in enumerate(self.block.client_of_user):
            consensus, personal = self.views(int(client))
            vector = self.private.users[user]
            lists = top(np.stack([consensus @ vector, personal @ vector]), depth)
            found[user] = rank_biased_overlap(lists[:1], lists[1:], p)[0]
        return found

    def correlation(self, client: int) -> NDArray[np.float64]:
        """The correlation matrix ``C^E^T V`` ``[d, d]`` of one client (Eq. 17, Figure 7)."""
        consensus, personal = self.views(client)
        return np.asarray(consensus.astype(np.float64).T @ personal.astype(np.float64))


def prototypes(block: Block, tables: Float32) -> Float32:
    """Mean vectors of the interacted items of each client ``[clients, d]`` (Eq. 10).

    ``tables`` is ``[n_items, d]``, the same for all, or ``[clients, n_items, d]``.
    """
    start = block.train.start[block.user_start]
    found = np.zeros((block.n_clients, tables.shape[-1]), np.float32)
    for client in range(block.n_clients):
        ids = block.train.values[start[client] : start[client + 1]]
        if len(ids):
            found[client] = (tables if tables.ndim == 2 else tables[client])[ids].mean(0)
    return found


def enlarged(items: Float32, changes: Rows | None, users: Float32, owners: Int64) -> Float32:
    """``u . c`` for every user and item, with each client's own changes on top: ``[users, n_items]``."""
    if changes is None:
        return users @ items.T
    if len(changes.ids) != changes.n_clients * changes.n_items:
        return ItemTable(items, changes).scores(users, owners)
    scores = np.asarray(users @ items.T)
    add_products(scores, wire.whole_tables(changes), users, owners)
    return scores


def add_products(scores: Float32, tables: Float32, users: Float32, owners: Int64) -> None:
    """``scores[u] += tables[owners[u]] u`` for every user, in place; as fast as memory is read."""
    for user, client in enumerate(owners):
        scores[user] += tables[client] @ users[user]
