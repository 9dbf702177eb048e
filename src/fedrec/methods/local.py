"""Local: every client trains its own item table, nothing is exchanged. The leak canary.

Without federation a client can know nothing about items it has not trained on, so under an honest
protocol this method gets chance. Where it beats chance, the protocol leaks.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from fedrec.core import messages
from fedrec.core.block import Block, World
from fedrec.core.messages import Array, Float32, per_client, per_user
from fedrec.core.method import Card, Keys, Update
from fedrec.core.sums import SumField, Summands, Sums
from fedrec.data.ragged import Int32, Int64
from fedrec.methods._shared.embedding import EmbeddingMethod, fresh_items, moved
from fedrec.methods._shared.personal import add_changes


@dataclass(frozen=True)
class OwnModel(messages.Private):
    """A client's whole model."""

    state_name = "local.OwnModel"

    users: Float32 = per_user()  # [users, d]
    tables: Float32 = per_client()  # [clients, n_items, d]
    networks: dict[str, Array] = per_client()  # [clients, ...]


@dataclass(frozen=True)
class Nothing(messages.Upload):
    """An empty message."""


@dataclass(frozen=True)
class NothingDown(messages.Download):
    """An empty message."""


@dataclass(frozen=True)
class NoServer:
    """There is no server."""

    rounds: int = 0


class Local(EmbeddingMethod[Any, Any, Nothing, NothingDown]):
    """Private tables, no federation."""

    name = "local"
    federates = False
    Private, Upload, Download = OwnModel, Nothing, NothingDown
    card = Card(
        title="private tables without federation: the control that shows whether a protocol leaks",
        paper="the baseline Local of FedCA (section 6.1)",
        private="everything",
        upload="nothing",
        sum_suffices=True,
    )

    def start_server(self, world: World, keys: Keys) -> NoServer:
        return NoServer()

    def start_clients(self, world: World, block: Block, keys: Keys) -> OwnModel:
        users = super().start_clients(world, block, keys).users
        # every client starts from the same table: what differs later is what it learnt itself
        table = fresh_items(world, keys, self.settings)
        networks = self.backbone.start(keys.clients(block, "networks"), self.settings.dim)
        return OwnModel(users, np.repeat(table[None], block.n_clients, axis=0), networks)

    def download(self, server: NoServer, clients: Int64) -> NothingDown:
        return NothingDown()

    def local_update(self, private: Any, download: Any, block: Block, keys: Keys) -> Update[Any, Any]:
        trained = self.train(private.users, private.tables, private.networks, block, keys)
        add_changes(private.tables, np.arange(block.n_clients), trained.rows)
        networks = moved(private.networks, trained.networks)
        return Update(OwnModel(trained.users, private.tables, networks), Nothing(), trained.loss)

    def sum_fields(self, server: NoServer, users: int) -> dict[str, SumField]:
        return {}

    def summands(self, upload: Nothing, download: NothingDown) -> Summands:
        return {}

    def finish(self, server: NoServer, sums: Sums, keys: Keys) -> NoServer:
        return NoServer(server.rounds + 1)

    def score(self, private: Any, model: Any, block: Block, items: Int32 | None = None) -> Float32:
        scores = self.backbone.scores(private.users, private.tables, private.networks, block.client_of_user)
        return scores if items is None else np.take_along_axis(scores, items, axis=1)

    def client_bytes(self, world: World) -> int:
        dim: int = self.settings.dim
        return super().client_bytes(world) + 4 * world.n_items * dim
