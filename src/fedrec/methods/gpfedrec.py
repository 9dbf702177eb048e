"""GPFedRec: a table for each user from a graph of users, and one for everybody.

Zhang et al., "GPFedRec: graph-guided personalization for federated recommendation", KDD 2024. The server builds a
user relationship graph from the item embeddings it receives and learns user-specific item embeddings by passing
messages along it (FedIAR section 5.1, Fed3CR section V-A); the mean of these is the globally shared table. User
vectors and score functions stay with the clients.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any, ClassVar, Literal

import numpy as np
from pydantic import Field

from fedrec.core import disk_array, messages
from fedrec.core.block import Block, World
from fedrec.core.messages import Float32, per_client, per_user, shared
from fedrec.core.method import Card, Keys, Reply
from fedrec.data.ragged import Int64
from fedrec.learn.trained import Trained
from fedrec.methods._shared.embedding import EmbeddingMethod, fresh_items, item_rate
from fedrec.methods._shared.personal import (
    Networks,
    PersonalMethod,
    PersonalModel,
    StackSettings,
    TicketUpload,
    blended,
    collect,
    fresh_networks,
    fresh_tables,
    of_clients,
    tickets,
)


class GPFedRecSettings(StackSettings):
    """Settings of GPFedRec; local training as everywhere else here (FedCA section 6.1)."""

    graph: Literal["nearest", "farthest"] = Field(
        "nearest",
        description="neighbours are the most similar users (the paper), or the least similar (the public code, "
        "where a cosine distance is taken for a similarity)",
    )
    neighbours: int = Field(0, ge=0, description="how many neighbours a user has; 0: all above the threshold")
    threshold: float = Field(
        1.0, gt=0, description="threshold of similarity, as a multiple of the mean over all pairs (neighbours=0)"
    )
    layers: int = Field(1, ge=1, description="steps of message passing on the graph (l)")
    personal_share: float = Field(
        0.5,
        ge=0,
        le=1,
        description="share of the user-specific table in the table that a client starts from; the rest is the shared "
        "table",
    )
    lr_items_factor: float = Field(
        0.0, ge=0, description="item rows learn at lr * this * n_items (80 in the public code); 0: at lr"
    )


@dataclass(frozen=True)
class GraphServer:
    """The globally shared table and the user-specific ones."""

    items: Float32  # [n_items, d]
    tables: Float32  # [clients, n_items, d]


@dataclass(frozen=True)
class OwnScorer(messages.Private):
    """User vectors and the score function; never leave."""

    users: Float32 = per_user()  # [users, d]
    networks: Networks = per_client()  # [clients, ...]


@dataclass(frozen=True)
class GraphDownload(messages.Download):
    """The shared table and one's own."""

    items: Float32 = shared()  # [n_items, d]
    tables: Float32 = per_client()  # [clients, n_items, d]


class GPFedRec(PersonalMethod[GraphServer, OwnScorer, TicketUpload, GraphDownload]):
    """R_u = sum_v a_uv Q_v along the graph, Q = mean of R_u; a client starts between R_u and Q."""

    name = "gpfedrec"
    Settings = GPFedRecSettings
    Private, Upload, Download = OwnScorer, TicketUpload, GraphDownload
    enough: ClassVar[dict[str, Any]] = {"personal_share": 0.2}
    card = Card(
        title="GPFedRec: user-specific tables from a graph of users, beside one shared by all",
        paper="Zhang et al., KDD 2024; as described in FedIAR (section 5.1) and Fed3CR (section V-A)",
        private="user vectors, score function, interactions",
        upload="change of the item table, the number of training interactions, a random ticket (both unused)",
        sum_suffices=False,
        robust="rows",
        departures=(
            "in the public code a client starts from the shared table and a penalty pulls it to its own; its rates "
            "move every row half the way at each step. Here a client starts between the two (personal_share)",
            "the public code's graph keeps the farthest users: graph=farthest",
            "all edges have the same weight, as in the public code; a user's own table counts only if it is among the "
            "neighbours",
            "the score function is the dot product (backbone=mf) or layers 32-16-8 (ncf), not 64-32-16-8",
            "local training uses Adam, as for the other methods; the public code has SGD 0.1 (item rows 0.1 * 80 * "
            "m), one epoch, d = 32: optimizer=sgd lr=0.1 lr_items_factor=80 epochs=1 dim=32",
        ),
    )

    def start_server(self, world: World, keys: Keys) -> GraphServer:
        return GraphServer(fresh_items(world, keys, self.settings), fresh_tables(world, keys, self.settings))

    def start_clients(self, world: World, block: Block, keys: Keys) -> OwnScorer:
        users = EmbeddingMethod.start_clients(self, world, block, keys).users
        return OwnScorer(users, fresh_networks(self.backbone, keys.seed, self.settings.dim, block.n_clients))

    def download(self, server: GraphServer, clients: Int64) -> GraphDownload:
        return GraphDownload(server.items, of_clients(server.tables, clients))

    def start_tables(self, private: OwnScorer, download: GraphDownload) -> tuple[Float32, Networks]:
        return self.blended(download.tables, download.items), private.networks

    def blended(self, own: Float32, common: Float32) -> Float32:
        """Where a client starts: between its own table and the shared one ``[clients, n_items, d]``."""
        return blended(own, common, self.settings.personal_share)

    def train(self, users: Any, table: Any, networks: Any, block: Block, keys: Keys, **more: Any) -> Trained:
        return super().train(users, table, networks, block, keys, lr_items=item_rate(self.settings, block), **more)

    def kept(self, private: OwnScorer, trained: Trained, model: PersonalModel) -> OwnScorer:
        return replace(private, users=trained.users, networks=model.networks)

    def sent(self, trained: Trained, model: PersonalModel, block: Block, keys: Keys) -> TicketUpload:
        return TicketUpload(trained.rows, {}, block.sizes.astype(np.int32), tickets(block, keys))

    def aggregate(self, server: GraphServer, replies: Iterator[Reply[TicketUpload]], keys: Keys) -> GraphServer:
        from fedrec.maths.graphs import cosines, neighbourhoods, pass_along

        tables = disk_array.zeros(server.tables.shape, self.settings.budget(), reserve=True)
        for part in disk_array.pieces(tables):
            tables[part] = self.blended(server.tables[part], server.items)
            disk_array.forget(tables)
            disk_array.forget(server.tables)
        answers = collect(tables, {}, replies)
        if answers is None:
            return server
        clients = np.sort(answers.clients)
        whole = None if len(clients) == len(tables) else clients
        chosen = self.settings
        weights = neighbourhoods(cosines(tables, whole, self.device), chosen.graph, chosen.neighbours, chosen.threshold)
        for _ in range(chosen.layers):
            pass_along(tables, weights, whole, self.device)
        total = np.zeros(tables.shape[1:])
        for part in disk_array.pieces(tables, len(clients)):
            for client in clients[part]:  # one table of working memory
                total += tables[client]
            disk_array.forget(tables)
        if whole is not None:  # who was absent keeps the table it had
            absent = np.setdiff1d(np.arange(len(tables)), clients)
            tables[absent] = server.tables[absent]
            disk_array.forget(server.tables)
        disk_array.forget(tables)
        return GraphServer((total / len(clients)).astype(np.float32), tables)
