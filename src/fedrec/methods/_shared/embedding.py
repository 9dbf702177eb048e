"""What methods with user vectors and an item table share: start, local training, scoring.

A method adds how uploads become the next table. Symbols as in FedCA section 4: user vector p_u (private),
item table Q (shared), network weights Theta where the backbone has layers.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any, ClassVar, Generic, Literal, TypeVar

import numpy as np
from pydantic import Field

from fedrec import keyed
from fedrec.backbones import find as find_backbone
from fedrec.backbones.tables import ItemTable
from fedrec.core import messages
from fedrec.core.block import Block, World
from fedrec.core.fold import Float64, add_rows, weighted_sum
from fedrec.core.messages import Array, Float32, Rows, per_client, per_user, shared
from fedrec.core.method import Card, Keys, Method, Reply, Update
from fedrec.core.settings import TrainingSettings
from fedrec.data.ragged import Int32, Int64
from fedrec.learn.samples import draw
from fedrec.learn.train import train_block
from fedrec.learn.trained import Trained


class EmbeddingSettings(TrainingSettings):
    """Settings of methods with an item table."""

    backbone: Literal["mf", "ncf", "sasrec"] = Field(
        "mf", description="scoring model: mf (dot product), ncf (layers) or sasrec (attention over the last items)"
    )
    init: Literal["positive", "uniform", "normal"] = Field(
        "positive",
        description="fresh embeddings: uniform on [0, scale], uniform on [-scale, scale], or normal",
    )
    init_scale: float = Field(0.3, gt=0, description="scale of fresh embeddings")


@dataclass(frozen=True)
class ItemServer:
    """The server's state: one item table and one network for everybody."""

    items: Float32  # [n_items, d]
    networks: dict[str, Array] = field(default_factory=dict)


@dataclass(frozen=True)
class UserVectors(messages.Private):
    """p_u of every user; never leaves."""

    users: Float32 = per_user()  # [users, d]


@dataclass(frozen=True)
class ItemDownload(messages.Download):
    """The shared table and network."""

    items: Float32 = shared()  # [n_items, d]
    networks: dict[str, Array] = shared()


@dataclass(frozen=True)
class LocalModel(messages.Model):
    """What a client holds right after training: the shared table with its own changes on top."""

    items: Float32 = shared()  # [n_items, d]
    changes: Rows | None = per_client()
    networks: dict[str, Array] = per_client()  # [clients, ...]


@dataclass(frozen=True)
class ItemUpload(messages.Upload):
    """Changes of the item table and of the network."""

    rows: Rows = per_client()
    networks: dict[str, Array] = per_client()  # [clients, ...]


S = TypeVar("S")
P = TypeVar("P", bound=messages.Private)
U = TypeVar("U", bound=messages.Upload)
D = TypeVar("D", bound=messages.Download)


vectors_stay = partial(Card, private="user vectors, interactions")
"""The card of a method that keeps user vectors and interactions on the client, and nothing else."""


def fresh(keys: keyed.U64, dim: int, settings: EmbeddingSettings) -> Float32:
    """Fresh embeddings, a row per key ``[len(keys), dim]``; a row depends on its own key only."""
    if settings.init == "positive":
        values = keyed.uniform(keys, dim) * settings.init_scale
    elif settings.init == "uniform":
        values = (2.0 * keyed.uniform(keys, dim) - 1.0) * settings.init_scale
    else:
        values = keyed.normal(keys, dim) * settings.init_scale
    return values.astype(np.float32)


def fresh_items(world: World, keys: Keys, settings: EmbeddingSettings, purpose: str = "items") -> Float32:
    """A fresh item table ``[n_items, d]``."""
    base = keyed.stream(keys.seed, keys.round, purpose)
    return fresh(keyed.streams(base, np.arange(world.n_items, dtype=np.uint64)), settings.dim, settings)


class EmbeddingMethod(Method[S, P, U, D], Generic[S, P, U, D]):
    """Local training with a downloaded table; subclasses say how uploads are folded."""

    Settings: ClassVar[type[Any]] = EmbeddingSettings
    Private: ClassVar[type[Any]] = UserVectors
    Upload: ClassVar[type[Any]] = ItemUpload
    Download: ClassVar[type[Any]] = ItemDownload

    def __init__(self, settings: Any = None, device: str = "cpu") -> None:
        super().__init__(settings, device)
        self.backbone = find_backbone(self.settings.backbone)

    def start_server(self, world: World, keys: Keys) -> Any:
        one = np.array([keyed.stream(keys.seed, "networks")], np.uint64)
        networks = {name: values[0] for name, values in self.backbone.start(one, self.settings.dim).items()}
        return ItemServer(fresh_items(world, keys, self.settings), networks)

    def start_clients(self, world: World, block: Block, keys: Keys) -> Any:
        return UserVectors(fresh(keys.users(block, "users"), self.settings.dim, self.settings))

    def download(self, server: Any, clients: Int64) -> Any:
        return ItemDownload(server.items, server.networks)

    def train(self, users: Float32, table: Float32, networks: Any, block: Block, keys: Keys, **more: Any) -> Trained:
        """LocalTraining of Algorithm 1 (FedCA) for the whole block: draw samples, then E epochs."""
        if self.backbone.sequential:
            from fedrec.learn.torch.sequential import train_sequences

            draws, order = keys.users(block, "negatives"), keys.clients(block, "batches")
            return train_sequences(
                block, table, self.settings, draws, order, self.backbone, networks, self.device,
                negatives=self.settings.negatives, **more,
            )  # fmt: skip
        engine = self.settings.engine
        samples = draw(
            block,
            self.settings.negatives,
            keys.clients(block, "negatives"),
            engine,
            self.settings.objective,
            self.device,
        )
        order = keys.clients(block, "batches")
        return train_block(
            block, samples, users, table, self.settings, order, self.backbone, networks, self.device, **more
        )

    def local_update(self, private: Any, download: Any, block: Block, keys: Keys) -> Update[Any, Any]:
        trained = self.train(private.users, download.items, download.networks, block, keys)
        local = LocalModel(download.items, trained.rows, stacked(download.networks, trained.networks))
        kept = replace(private, users=trained.users)
        return Update(kept, self.upload(trained, block), trained.loss, local)

    def upload(self, trained: Trained, block: Block) -> Any:
        """What leaves: changes of items and networks."""
        return ItemUpload(trained.rows, trained.networks)

    def score(self, private: Any, model: Any, block: Block, items: Int32 | None = None) -> Float32:
        changes = getattr(model, "changes", None)
        if model.networks or self.backbone.kernel is None:
            table = model.items if changes is None else model.items[None] + changes.dense()
            fresh_start = changes is None  # after training the private vectors are those of the trained table
            users = self.users_with(private, table, model.networks, block) if fresh_start else private.users
            scores = self.backbone.scores(users, table, model.networks, block.client_of_user)
        else:
            scores = ItemTable(model.items, changes).scores(private.users, block.client_of_user)
        return scores if items is None else np.take_along_axis(scores, items, axis=1)

    def users_with(self, private: Any, table: Float32, networks: Any, block: Block) -> Float32:
        """User vectors: the private ones, or what a sequential backbone reads with this table (or one a client)."""
        if not self.backbone.sequential:
            return np.asarray(private.users)
        from fedrec.learn.torch.sequential import represented

        return represented(block, table, self.backbone, networks, self.device)


def stacked(base: dict[str, Array], changes: dict[str, Array]) -> dict[str, Array]:
    """Network parameters of each client: the shared ones plus its changes ``[clients, ...]``."""
    return {name: base[name][None] + change for name, change in changes.items()}


@dataclass
class Mean:
    """A weighted mean of item and network changes, folded as uploads come."""

    items: Float64
    networks: dict[str, Float64] = field(default_factory=dict)
    weight: float = 0.0

    @classmethod
    def like(cls, server: ItemServer) -> Mean:
        return cls(np.zeros(server.items.shape, np.float64))

    def add(self, upload: Any, weights: Float64) -> None:
        """``weights`` ``[clients]``, one for each client of the upload."""
        add_rows(self.items, upload.rows, weights)
        for name, change in upload.networks.items():
            self.networks[name] = self.networks.get(name, 0.0) + weighted_sum(change, weights)
        self.weight += float(weights.sum())

    def applied(self, server: ItemServer) -> ItemServer:
        """The server's state moved by the mean change."""
        if not self.weight:
            return server
        items = (server.items + self.items / self.weight).astype(np.float32)
        moved = {
            name: (server.networks[name] + total / self.weight).astype(np.float32)
            for name, total in self.networks.items()
        }
        return replace(server, items=items, networks={**server.networks, **moved})


def fold_mean(server: ItemServer, replies: Iterator[Reply[Any]], weights: Any) -> ItemServer:
    """Move the server by the weighted mean of changes; ``weights(reply)`` gives ``[clients]``."""
    mean = Mean.like(server)
    for reply in replies:
        mean.add(reply.upload, np.asarray(weights(reply), np.float64))
    return mean.applied(server)
