"""Item tables of a block of clients: how they are read and multiplied."""

from __future__ import annotations

import numpy as np

from fedrec.backbones.tables import ItemTable
from fedrec.core import wire
from fedrec.core.block import Block
from fedrec.core.messages import Float32, Rows
from fedrec.data.ragged import Int64


def prototypes(block: Block, common: Float32 | None, tables: Float32 | None) -> Float32:
    """Mean vectors of the interacted items of each client ``[clients, d]`` (Eq. 10).

    The table is ``common`` ``[n_items, d]``, ``tables`` ``[clients, n_items, d]``, or their sum.
    """
    start = block.train.start[block.user_start]
    dim = (common if common is not None else tables).shape[-1]  # type: ignore[union-attr]
    found = np.zeros((block.n_clients, dim), np.float32)
    for client in range(block.n_clients):
        ids = block.train.values[start[client] : start[client + 1]]
        if not len(ids):
            continue
        if common is not None:
            found[client] += common[ids].mean(0)
        if tables is not None:
            found[client] += tables[client][ids].mean(0)
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
