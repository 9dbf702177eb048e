"""PFedRec: dual personalisation, a score function for each user and an item table tuned where it is used.

Zhang et al., "Dual personalization on federated recommendation", IJCAI 2023 (FedCA section 6.1, FedIAR section
5.1: "incorporates the user embeddings into the score function and performs local adaptation to generate
personalized item representations"). A client downloads the common item table, improves its own score function
with the table fixed, then tunes the table with the score function fixed, and sends the tuned table; the server
takes the plain mean.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, ClassVar, Literal

import numpy as np
from pydantic import Field

from fedrec import keyed
from fedrec.backbones import find as find_backbone
from fedrec.backbones.tables import ItemTable
from fedrec.core import messages
from fedrec.core.block import Block, World
from fedrec.core.messages import Array, Float32, per_client, per_user
from fedrec.core.method import Card, Keys, Update
from fedrec.data.ragged import Int32
from fedrec.learn.trained import Trained
from fedrec.methods._shared.embedding import (
    EmbeddingMethod,
    EmbeddingSettings,
    Init,
    ItemDownload,
    ItemServer,
    ItemUpload,
    LocalModel,
    fresh_items,
    item_rate,
    moved,
)
from fedrec.methods._shared.server_steps import MeanOfChanges


class PFedRecSettings(EmbeddingSettings):
    """Settings of PFedRec, as its public code has them."""

    dim: int = Field(32, ge=1, description="embedding dimension d")
    epochs: int = Field(1, ge=1, description="local epochs per round")
    lr: float = Field(0.1, gt=0, description="learning rate of the score function")
    optimizer: Literal["adam", "sgd"] = Field("sgd", description="local optimiser, fresh each round")
    lr_items_factor: float = Field(
        80.0, ge=0, description="item rows learn at lr * this * n_items (lr_eta = 80); 0: at lr"
    )
    init: Init = Field("normal", description="fresh item embeddings")
    init_scale: float = Field(1.0, gt=0, description="scale of fresh item embeddings")
    tune: bool = Field(
        True, description="whether a client tunes the table it downloads before it recommends (not only in training)"
    )


@dataclass(frozen=True)
class ScoreFunction(messages.Private):
    """The user's score function, and what its own tuning before recommending is drawn from."""

    users: Float32 = per_user()  # [users, d] weights of the affine layer
    bias: Float32 = per_user()  # [users]
    networks: dict[str, Array] = per_client()  # [clients, ...] layers, where the backbone has them
    streams: Any = per_client()  # uint64 [clients]


class PFedRec(MeanOfChanges, EmbeddingMethod[ItemServer, ScoreFunction, ItemUpload, ItemDownload]):
    """score = w_u . q_i + b_u with w_u, b_u private; Q = (1/n) sum_u Q_u, tuned again by every client."""

    name = "pfedrec"
    Settings = PFedRecSettings
    Private = ScoreFunction
    small: ClassVar[dict[str, Any]] = {"dim": 4}
    enough: ClassVar[dict[str, Any]] = {"dim": 32, "epochs": 1}
    enough_rounds = 60
    card = Card(
        title="PFedRec: a score function for each user, and an item table that every client tunes for itself",
        paper="Zhang et al., IJCAI 2023",
        private="score function (an affine layer, or a network), interactions, the tuned table",
        upload="change of the item table",
        sum_suffices=True,
        robust="rows",
        departures=(
            "the two steps take turns every epoch; in the public code, every batch (the same if a client's samples "
            "fit in one batch)",
            "where the protocol evaluates the next download, the client first tunes it with samples of its own, as it "
            "would on a device (post-tuning; tune=false evaluates the common table); no tuned table is stored",
            "all clients start from the same score function, as in the public code",
            "with backbone=ncf the score function is a private network 32-16-8 on the user vector and the item's row",
        ),
    )

    def __init__(self, settings: Any = None, device: str = "cpu") -> None:
        super().__init__(settings, device)
        if self.settings.backbone == "mf":
            self.backbone = find_backbone("affine")

    def start_server(self, world: World, keys: Keys) -> ItemServer:
        return ItemServer(fresh_items(world, keys, self.settings), {})

    def start_clients(self, world: World, block: Block, keys: Keys) -> ScoreFunction:
        """Everybody starts from one score function: uniform in +-1 / sqrt(d), as torch's linear layers start."""
        one = np.array([keyed.stream(keys.seed, "score function")], np.uint64)
        weights = (2.0 * keyed.uniform(one, self.settings.dim) - 1.0) / np.sqrt(self.settings.dim)
        networks = {} if self.affine else self.backbone.start(one, self.settings.dim)
        return ScoreFunction(
            np.repeat(weights.astype(np.float32), block.n_users, axis=0),
            np.zeros(block.n_users, np.float32),
            {name: np.repeat(values, block.n_clients, axis=0) for name, values in networks.items()},
            keys.clients(block, "tuning"),
        )

    @property
    def affine(self) -> bool:
        """Whether the score function is the affine layer, whose bias is kept by user."""
        return bool(self.backbone.per_user)

    def function(self, private: ScoreFunction) -> dict[str, Array]:
        """The score function's parameters beside its weights, as the trainer wants them."""
        return {"bias": private.bias} if self.affine else private.networks

    def train(self, users: Any, table: Any, networks: Any, block: Block, keys: Keys, **more: Any) -> Trained:
        """First the score function, then the item table, on the same samples."""
        first = super().train(users, table, networks, block, keys, lr_items=0.0, **more)
        then = super().train(
            first.users, table, moved(networks, first.networks), block, keys,
            chosen=self.still(), lr_users=0.0, lr_items=item_rate(self.settings, block),
        )  # fmt: skip
        return Trained(then.users, then.rows, then.loss, first.networks)

    def still(self) -> Any:
        """Settings with which layers do not move: what is left to learn is the item table."""
        rate = 1e-30  # a rate of zero is out of range for settings; nothing moves in 32 bits
        return self.settings.model_copy(update={"lr": rate, "weight_decay": 0.0})

    def local_update(
        self, private: ScoreFunction, download: ItemDownload, block: Block, keys: Keys
    ) -> Update[ScoreFunction, ItemUpload]:
        before = self.function(private)
        trained = self.train(private.users, download.items, before, block, keys)
        after = moved(before, trained.networks)
        kept = replace(
            private,
            users=trained.users,
            bias=after["bias"] if self.affine else private.bias,
            networks=private.networks if self.affine else after,
        )
        local = LocalModel(download.items, trained.rows, {})
        return Update(kept, ItemUpload(trained.rows, {}), trained.loss, local)

    def score(self, private: ScoreFunction, model: Any, block: Block, items: Int32 | None = None) -> Float32:
        users, changes = private.users, None
        if isinstance(model, LocalModel):
            changes = model.changes
        elif self.settings.tune:
            tuned = self.tuned(private, model.items, block)
            users, changes = tuned.users, tuned.rows
        else:
            users = self.users_with(private, model.items, private.networks, block)
        held = ItemTable(model.items, changes)
        return held.scores(users, block.client_of_user, items, self.backbone, self.function(private))

    def tuned(self, private: ScoreFunction, table: Float32, block: Block) -> Trained:
        """Post-tuning: the item step alone, on samples that are the client's own and the same every time."""
        streams = private.streams
        draws = keyed.mix(streams[block.client_of_user] + block.user_keys) if self.backbone.sequential else streams
        return self.train_on(
            private.users, table, self.function(private), block, draws, streams, self.still(),
            lr_users=0.0, lr_items=item_rate(self.settings, block),
        )  # fmt: skip
