"""What methods with a table for each client share: start from it, train it, score with it.

The server holds the clients' tables once, ``[clients, n_items, d]``; a client receives its own (sometimes with
a table for everybody beside it). A method adds how uploads become the next tables.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray
from pydantic import Field

from fedrec.backbones.tables import ItemTable
from fedrec.core import disk_array, messages
from fedrec.core.block import Block, World
from fedrec.core.messages import Array, Float32, Limit, Rows, per_client
from fedrec.core.method import D, Keys, P, Reply, S, U, Update
from fedrec.core.settings import folder_on_disk, memory_before_disk
from fedrec.data.ragged import Int32, Int64, consecutive
from fedrec.learn.trained import Trained
from fedrec.methods._shared.embedding import (
    EmbeddingMethod,
    EmbeddingSettings,
    ItemUpload,
    fresh_items,
    fresh_network,
    moved,
)

Networks = dict[str, Array]


class PersonalSettings(EmbeddingSettings):
    """Settings of methods with a table for each client."""

    proximal: float = Field(0.0, ge=0, description="mu of mu/2 ||Q - Q_start||^2 in local training")


class StackSettings(PersonalSettings):
    """Settings of methods whose server mixes the tables of all clients."""

    tables_budget_mb: int = memory_before_disk(8192, "the clients' tables on the server")
    tables_dir: str | None = folder_on_disk()

    def budget(self) -> disk_array.Budget:
        """For one stack of tables; while a round is folded there are two."""
        return disk_array.Budget(self.tables_budget_mb / 2, self.tables_dir)


@dataclass(frozen=True)
class PersonalServer:
    """What every client receives next."""

    tables: Float32  # [clients, n_items, d]
    networks: Networks  # [clients, ...]


@dataclass(frozen=True)
class PersonalDownload(messages.Download):
    """A client's own table and network."""

    tables: Float32 = per_client()  # [clients, n_items, d]
    networks: Networks = per_client()  # [clients, ...]


@dataclass(frozen=True)
class PersonalModel(messages.Model):
    """What a client holds right after training: the table it started from with its changes on top."""

    tables: Float32 = per_client()  # [clients, n_items, d]
    changes: Rows | None = per_client()
    networks: Networks = per_client()  # [clients, ...]


@dataclass(frozen=True)
class TicketUpload(ItemUpload):
    """Changes, the number of training interactions, and a random number that decides who is aggregated."""

    sizes: NDArray[np.int32] = per_client(protect=False, low=0, high=Limit.OWNED)  # [clients]
    tickets: NDArray[np.uint32] = per_client(protect=False, public=True)  # [clients]


class PersonalMethod(EmbeddingMethod[S, P, U, D]):
    """Local training from a table of one's own."""

    @abstractmethod
    def start_tables(self, private: Any, download: Any) -> tuple[Float32, Networks]:
        """Tables ``[clients, n_items, d]`` and networks ``[clients, ...]`` that clients start from, and score with."""

    @abstractmethod
    def sent(self, trained: Trained, model: PersonalModel, block: Block, keys: Keys) -> U:
        """What leaves after training."""

    def after(self, tables: Float32, networks: Networks, trained: Trained) -> PersonalModel:
        """What clients hold after training from ``tables``; ``networks`` are the trained ones."""
        return PersonalModel(tables, trained.rows, networks)

    def kept(self, private: Any, trained: Trained, model: PersonalModel) -> Any:
        """What stays: the trained user vectors."""
        return replace(private, users=trained.users)

    def local_update(self, private: Any, download: Any, block: Block, keys: Keys) -> Update[Any, Any]:
        tables, networks = self.start_tables(private, download)
        trained = self.train(private.users, tables, networks, block, keys, proximal=self.settings.proximal)
        model = self.after(tables, moved(networks, trained.networks), trained)
        kept = self.kept(private, trained, model)
        return Update(kept, self.sent(trained, model, block, keys), trained.loss, model)

    def score(self, private: Any, model: Any, block: Block, items: Int32 | None = None) -> Float32:
        users = private.users
        if isinstance(model, PersonalModel):
            tables, changes, networks = model.tables, model.changes, model.networks
        else:
            (tables, networks), changes = self.start_tables(private, model), None
            users = self.users_with(private, tables, networks, block)
        held = ItemTable(tables, changes)
        return held.scores(users, block.client_of_user, items, self.backbone, networks)

    def client_bytes(self, world: World) -> int:
        return super().client_bytes(world) + 8 * world.n_items * int(self.settings.dim)


def tickets(block: Block, keys: Keys, purpose: str = "aggregated") -> NDArray[np.uint32]:
    """A random number for each client: the lowest are chosen, whatever the clients' order."""
    return (keys.clients(block, purpose) >> np.uint64(32)).astype(np.uint32)


def lowest(drawn: NDArray[np.uint32], share: float) -> Int64:
    """Positions of the ``share`` with the lowest tickets (at least one), ascending."""
    wanted = max(1, round(share * len(drawn)))
    return np.sort(np.argsort(drawn, kind="stable")[:wanted]).astype(np.int64)


def fresh_tables(world: World, keys: Keys, settings: Any) -> Float32:
    """The same fresh table for every client: a view that takes no memory until it is replaced."""
    table = fresh_items(world, keys, settings)
    return np.broadcast_to(table, (world.n_clients, *table.shape))


def fresh_networks(backbone: Any, seed: int, dim: int, clients: int) -> Networks:
    """The same fresh network for every client ``[clients, ...]``."""
    one = fresh_network(backbone, seed, dim)
    return {name: np.repeat(values[None], clients, axis=0) for name, values in one.items()}


def blended(own: Array, common: Array, share: float) -> Array:
    """``share`` of clients' own values ``[clients, ...]``, the rest of a common one."""
    result = own * np.float32(share)
    result += (1 - np.float32(share)) * common
    return result


def of_clients(array: Array, clients: Int64) -> Array:
    """The entries of some clients; a view where they are consecutive."""
    return array[clients[0] : clients[-1] + 1] if consecutive(clients) else array[clients]


def add_changes(tables: Float32, clients: Int64, rows: Rows) -> None:
    """Write clients' changes over their tables ``[all clients, n_items, d]``, in place."""
    if len(rows.ids) == rows.n_clients * rows.n_items:  # whole tables
        changes = rows.values.reshape(rows.n_clients, rows.n_items, -1)
        for position, client in enumerate(clients):
            tables[client] += changes[position]
        return
    owner = np.repeat(clients, np.diff(rows.start))
    tables[owner, rows.ids] += rows.values


@dataclass(frozen=True)
class Collected:
    """All uploads of a round: who sent them and what else they report, in the order they came."""

    clients: Int64  # [n] who answered
    sizes: Int64  # [n]
    tickets: NDArray[np.uint32]  # [n]


def collect(tables: Float32, networks: Networks, replies: Iterator[Reply[TicketUpload]]) -> Collected | None:
    """Turn starting tables into trained ones, in place, as uploads come; None where nobody answered."""
    found: list[tuple[Int64, Int64, NDArray[np.uint32]]] = []
    for reply in replies:
        add_changes(tables, reply.clients, reply.upload.rows)
        for name, change in reply.upload.networks.items():
            networks[name][reply.clients] += change
        disk_array.forget(tables)
        found.append((reply.clients, reply.upload.sizes.astype(np.int64), reply.upload.tickets))
    return Collected(*map(np.concatenate, zip(*found, strict=True))) if found else None
