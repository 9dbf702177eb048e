"""Item tables of a block of clients: how they start, are stacked, averaged, read and multiplied."""

from __future__ import annotations

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fedrec import keyed
from fedrec.backbones.tables import ItemTable
from fedrec.core import wire
from fedrec.core.block import Block, World
from fedrec.core.messages import Float32, Rows
from fedrec.core.method import Keys, Reply
from fedrec.data.ragged import Int64
from fedrec.methods._shared.embedding import EmbeddingSettings, ItemServer, ItemUpload, fresh
from fedrec.threads import thread_count

SUM_LEAST = 1 << 14
"""Numbers of a table that are worth a thread of their own."""


def fresh_table(world: World, keys: Keys, chosen: Any, purpose: str, scale: float) -> Float32:
    """A fresh item table ``[n_items, d]``; zeros for a scale of 0."""
    if not scale:
        return np.zeros((world.n_items, chosen.dim), np.float32)
    base = keyed.stream(keys.seed, keys.round, purpose)
    start = EmbeddingSettings(dim=chosen.dim, init=chosen.init, init_scale=scale)
    return fresh(keyed.streams(base, np.arange(world.n_items, dtype=np.uint64)), chosen.dim, start)


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


def mean_of_clients(server: ItemServer, replies: Iterator[Reply[ItemUpload]]) -> ItemServer:
    """The server moved to the clients' mean table and mean networks, summed in 64 bits as uploads come."""
    items = np.zeros(server.items.shape, np.float64)
    networks = {name: np.zeros(array.shape, np.float64) for name, array in server.networks.items()}
    count = 0
    for reply in replies:
        add_clients(items, wire.whole_tables(reply.upload.rows))
        for name, change in reply.upload.networks.items():
            add_clients(networks[name], change)
        count += len(reply.clients)
    if not count:
        return server
    return replace(
        server,
        items=(server.items + items / count).astype(np.float32),
        networks={name: (server.networks[name] + total / count).astype(np.float32) for name, total in networks.items()},
    )


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


def add_clients(total: NDArray[np.float64], changes: Float32) -> None:
    """``total += the sum over clients``, in 64 bits; threads take parts of the table, so that sums stay the same."""
    threads = thread_count()
    into, each = total.reshape(-1), changes.reshape(len(changes), -1)
    size = max(SUM_LEAST, -(-len(into) // threads))

    def part(first: int) -> None:
        own = slice(first, first + size)
        into[own] += each[:, own].sum(0, dtype=np.float64)

    with ThreadPoolExecutor(threads) as pool:
        for done in [pool.submit(part, first) for first in range(0, len(into), size)]:
            done.result()
