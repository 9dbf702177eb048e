"""What methods with user vectors and an item table share: start, local training, scoring.

A method adds how uploads become the next table. Symbols as in FedCA section 4: user vector p_u (private),
item table Q (shared), network weights Theta where the backbone has layers.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any, ClassVar, Literal, TypeAlias

import numpy as np
from pydantic import Field

from fedrec import keyed
from fedrec.backbones import find as find_backbone
from fedrec.backbones.tables import ItemTable
from fedrec.core import messages
from fedrec.core.block import Block, World
from fedrec.core.messages import Array, Float32, Rows, per_client, per_user, shared
from fedrec.core.method import Card, D, Keys, Method, P, S, U, Update
from fedrec.core.settings import TrainingSettings
from fedrec.data.ragged import Int32, Int64
from fedrec.keyed import U64
from fedrec.learn.samples import draw
from fedrec.learn.train import train_block
from fedrec.learn.trained import Trained

Init: TypeAlias = Literal["positive", "uniform", "normal"]


class EmbeddingSettings(TrainingSettings):
    """Settings of methods with an item table."""

    backbone: Literal["mf", "ncf", "sasrec"] = Field(
        "mf", description="scoring model: mf (dot product), ncf (layers) or sasrec (attention over the last items)"
    )
    init: Init = Field(
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


vectors_stay = partial(Card, private="user vectors, interactions")
"""The card of a method that keeps user vectors and interactions on the client, and nothing else."""


def fresh(keys: U64, dim: int, settings: Any, scale: float | None = None) -> Float32:
    """Fresh embeddings, a row per key ``[len(keys), dim]``; a row depends on its own key only.

    ``settings.init`` says how they are drawn, ``scale`` (by default ``settings.init_scale``) how large; 0: zeros.
    """
    scale = settings.init_scale if scale is None else scale
    if not scale:
        return np.zeros((len(keys), dim), np.float32)
    if settings.init == "positive":
        values = keyed.uniform(keys, dim)
    elif settings.init == "uniform":
        values = 2.0 * keyed.uniform(keys, dim) - 1.0
    else:
        values = keyed.normal(keys, dim)
    return (values * scale).astype(np.float32)


def fresh_items(world: World, keys: Keys, settings: Any, purpose: str = "items", scale: float | None = None) -> Float32:
    """A fresh item table ``[n_items, d]``."""
    base = keyed.stream(keys.seed, keys.round, purpose)
    return fresh(keyed.streams(base, np.arange(world.n_items, dtype=np.uint64)), settings.dim, settings, scale)


def item_rate(settings: Any, block: Block) -> float:
    """The item rows' learning rate with ``lr_items_factor``: lr * lr_eta * n_items; lr where the factor is 0."""
    factor = settings.lr_items_factor
    return float(settings.lr * factor * block.n_items if factor else settings.lr)


def fresh_network(backbone: Any, seed: int, dim: int) -> dict[str, Array]:
    """A fresh network, one for everybody."""
    one = np.array([keyed.stream(seed, "networks")], np.uint64)
    return {name: values[0] for name, values in backbone.start(one, dim).items()}


class EmbeddingMethod(Method[S, P, U, D]):
    """Local training with a downloaded table; subclasses say how uploads are folded."""

    Settings: ClassVar[type[Any]] = EmbeddingSettings
    Private: ClassVar[type[Any]] = UserVectors
    Upload: ClassVar[type[Any]] = ItemUpload
    Download: ClassVar[type[Any]] = ItemDownload

    def __init__(self, settings: Any = None, device: str = "cpu") -> None:
        super().__init__(settings, device)
        self.backbone = find_backbone(self.settings.backbone)

    def start_server(self, world: World, keys: Keys) -> Any:
        networks = fresh_network(self.backbone, keys.seed, self.settings.dim)
        return ItemServer(fresh_items(world, keys, self.settings), networks)

    def start_clients(self, world: World, block: Block, keys: Keys) -> Any:
        return UserVectors(fresh(keys.users(block, "users"), self.settings.dim, self.settings))

    def download(self, server: Any, clients: Int64) -> Any:
        return ItemDownload(server.items, server.networks)

    def train(self, users: Float32, table: Float32, networks: Any, block: Block, keys: Keys, **more: Any) -> Trained:
        """LocalTraining of Algorithm 1 (FedCA) for the whole block: draw samples, then E epochs."""
        draws = (keys.users if self.backbone.sequential else keys.clients)(block, "negatives")
        return self.train_on(users, table, networks, block, draws, keys.clients(block, "batches"), **more)

    def train_on(
        self, users: Float32, table: Float32, networks: Any, block: Block, draws: U64, order: U64,
        chosen: Any = None, **more: Any,
    ) -> Trained:  # fmt: skip
        """The same from given streams: ``draws`` of negatives (of clients, or of users read in sequence), ``order``.

        ``chosen`` takes the place of the method's settings; ``more`` goes to the engine.
        """
        chosen = chosen or self.settings
        if self.backbone.sequential:
            from fedrec.learn.torch.sequential import train_sequences

            return train_sequences(
                block, table, chosen, draws, order, self.backbone, networks, self.device,
                negatives=chosen.negatives, **more,
            )  # fmt: skip
        samples = draw(block, chosen.negatives, draws, chosen.engine, chosen.objective, self.device)
        return train_block(block, samples, users, table, chosen, order, self.backbone, networks, self.device, **more)

    def local_update(self, private: Any, download: Any, block: Block, keys: Keys) -> Update[Any, Any]:
        trained = self.train(private.users, download.items, download.networks, block, keys)
        local = LocalModel(download.items, trained.rows, moved(download.networks, trained.networks))
        kept = replace(private, users=trained.users)
        return Update(kept, self.upload(trained, download, block, keys), trained.loss, local)

    def upload(self, trained: Trained, download: Any, block: Block, keys: Keys) -> Any:
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


SharedTable: TypeAlias = EmbeddingMethod[ItemServer, UserVectors, ItemUpload, ItemDownload]
"""One table for everybody, and changes of it."""


def moved(networks: dict[str, Array], changes: dict[str, Array]) -> dict[str, Array]:
    """Network parameters of each client: the shared ones (or its own) plus its changes ``[clients, ...]``."""
    return {name: networks[name] + change for name, change in changes.items()}
