"""Centralised matrix factorisation with the pairwise loss BPR.

Rendle et al., "BPR: Bayesian personalized ranking from implicit feedback", UAI 2009. It is trained by the
same primitive as the federated methods: one client that holds all users.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar, Literal, TypeVar

import numpy as np
from pydantic import Field

from fedrec import keyed
from fedrec.backbones.base import Backbone
from fedrec.backbones.mf import MatrixFactorisation
from fedrec.core.block import Block
from fedrec.core.messages import Array, Float32
from fedrec.core.method import Keys
from fedrec.core.population import new_block
from fedrec.core.reference import Central, InEpochs, collected
from fedrec.core.settings import Settings
from fedrec.data.ragged import Int64
from fedrec.keyed import U64
from fedrec.learn.samples import draw
from fedrec.learn.train import train_block
from fedrec.learn.trained import Trained


@dataclass(frozen=True)
class Factors:
    """User and item factors."""

    users: Float32  # [users, d]
    items: Float32  # [n_items, d]


F = TypeVar("F", bound=Factors)


class CentralMfSettings(Settings):
    """Settings of centralised BPR-MF; a round is one epoch."""

    dim: int = Field(64, ge=1, description="number of factors d")
    epochs: int = Field(1, ge=1, description="passes over the data per round")
    batch_size: int = Field(1024, ge=1, description="mini-batch size")
    lr: float = Field(0.005, gt=0, description="learning rate of Adam (fresh each round)")
    optimizer: Literal["adam", "sgd"] = Field("adam", description="optimiser")
    weight_decay: float = Field(0.0, ge=0, description="unused by the dot product; kept for the trainer")
    shrink: float = Field(1e-3, ge=0, lt=1, description="factors are shrunk by this share after each round (L2)")
    negatives: int = Field(1, ge=1, description="negatives per positive")
    objective: Literal["bce", "bpr"] = Field("bpr", description="pairwise or pointwise loss")
    engine: Literal["auto", "kernel", "torch"] = Field("auto", description="kernel or torch")


FOLD_EPOCHS = 100
"""Passes over somebody new's own history."""


class InFactors(InEpochs[F]):
    """A model that scores a user's vector against item rows; trained with everybody as one client."""

    backbone: ClassVar[Backbone] = MatrixFactorisation()

    def vectors(self, state: F) -> tuple[Float32, Float32]:
        """What is scored with: ``[users, d]`` and ``[n_items, d]``."""
        return state.users, state.items

    def networks(self, state: F) -> dict[str, Array]:
        """The backbone's layers."""
        return {}

    def trained(self, state: F, data: Central, keys: Keys) -> Trained:
        """After a round of training."""
        everyone, chosen = one_client(data), self.settings
        streams = keys.clients(everyone, "negatives")
        samples = draw(everyone, chosen.negatives, streams, chosen.engine, chosen.objective, self.device)
        batches, layers = keys.clients(everyone, "batches"), self.networks(state)
        return train_block(
            everyone, samples, state.users, state.items, chosen, batches, self.backbone, layers, self.device
        )

    def score(self, state: F, data: Central, users: Int64) -> Float32:
        known, items = self.vectors(state)
        return self.backbone.scores(known[users], items, self.networks(state))

    def score_new(self, state: F, data: Central, new: Central, users: U64, keys: Keys) -> Float32:
        """New users' vectors are trained on their own histories; items and layers stay as they are."""
        items, layers, chosen = self.vectors(state)[1], self.networks(state), self.settings
        block = new_block(new.train, new.world.n_items, users)
        frozen = chosen.model_copy(update={"lr": 1e-30, "weight_decay": 0.0, "epochs": FOLD_EPOCHS})
        streams, batches = keys.clients(block, "new"), keys.clients(block, "new batches")
        samples = draw(block, chosen.negatives, streams, chosen.engine, chosen.objective, self.device)
        start = (0.1 * keyed.normal(keys.users(block, "new users"), items.shape[1])).astype(np.float32)
        found = train_block(
            block, samples, start, items, frozen, batches, self.backbone, layers, self.device,
            lr_items=0.0, lr_users=chosen.lr,
        )  # fmt: skip
        return self.backbone.scores(found.users, items, layers)


class CentralMf(InFactors[Factors]):
    """BPR-MF on collected histories."""

    name = "mf"
    Settings = CentralMfSettings
    card = collected("matrix factorisation with BPR on collected histories", "Rendle et al., UAI 2009")

    def start(self, data: Central, keys: Keys) -> Factors:
        return Factors(*fresh_factors(data, keys, self.settings.dim))

    def step(self, state: Factors, data: Central, keys: Keys) -> tuple[Factors, float]:
        trained = self.trained(state, data, keys)
        keep = np.float32(1.0 - self.settings.shrink)
        return Factors(trained.users * keep, moved(state.items, trained) * keep), float(trained.loss[0])


def fresh_factors(data: Central, keys: Keys, dim: int) -> tuple[Float32, Float32]:
    """Small normal users ``[users, d]`` and items ``[n_items, d]``."""

    def fresh(purpose: str, count: int) -> Float32:
        rows = keyed.streams(keyed.stream(keys.seed, purpose), np.arange(count, dtype=np.uint64))
        return (0.1 * keyed.normal(rows, dim)).astype(np.float32)

    return fresh("users", len(data.train)), fresh("items", data.world.n_items)


def moved(items: Float32, trained: Trained) -> Float32:
    """The item table with what was learnt added."""
    items = items.copy()
    items[trained.rows.ids] += trained.rows.values
    return items


def one_client(data: Central) -> Block:
    """All users as one client."""
    users = len(data.train)
    return Block(
        n_items=data.world.n_items,
        clients=np.zeros(1, np.int64),
        client_keys=np.array([keyed.key_of("everyone")], np.uint64),
        user_start=np.array([0, users], np.int64),
        user_keys=np.arange(users, dtype=np.uint64),
        train=data.train,
        exclude=data.exclude,
        ordered=data.ordered,
    )
