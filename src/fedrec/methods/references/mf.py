"""Centralised matrix factorisation with the pairwise loss BPR.

Rendle et al., "BPR: Bayesian personalized ranking from implicit feedback", UAI 2009. It is trained by the
same primitive as the federated methods: one client that holds all users.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal

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


class CentralMfSettings(Settings):
    """Settings of centralised BPR-MF; a round is one epoch."""

    dim: int = Field(64, ge=1, description="number of factors d")
    epochs: int = Field(1, ge=1, description="passes over the data in a round")
    batch_size: int = Field(1024, ge=1, description="mini-batch size")
    lr: float = Field(0.005, gt=0, description="learning rate of Adam (fresh each round)")
    optimizer: Literal["adam", "sgd"] = Field("adam", description="optimiser")
    weight_decay: float = Field(0.0, ge=0, description="unused by the dot product; kept for the trainer")
    shrink: float = Field(1e-3, ge=0, lt=1, description="factors are shrunk by this share after each round (L2)")
    negatives: int = Field(1, ge=1, description="negatives per positive")
    objective: Literal["bce", "bpr"] = Field("bpr", description="pairwise or pointwise loss")
    engine: Literal["auto", "kernel", "torch"] = Field("auto", description="kernel or torch")


class CentralMf(InEpochs[Factors]):
    """BPR-MF on collected histories."""

    name = "mf"
    Settings = CentralMfSettings
    card = collected("matrix factorisation with BPR on collected histories", "Rendle et al., UAI 2009")

    def start(self, data: Central, keys: Keys) -> Factors:
        return Factors(*fresh_factors(data, keys, self.settings.dim))

    def step(self, state: Factors, data: Central, keys: Keys) -> tuple[Factors, float]:
        trained = one_round(state, {}, MatrixFactorisation(), data, keys, self.settings, self.device)
        keep = np.float32(1.0 - self.settings.shrink)
        return Factors(trained.users * keep, moved(state.items, trained) * keep), float(trained.loss[0])

    def score(self, state: Factors, data: Central, users: Int64) -> Float32:
        return state.users[users] @ state.items.T

    def score_new(self, state: Factors, data: Central, new: Central, users: U64, keys: Keys) -> Float32:
        own = folded_users(new, state.items, self.settings, users, keys, MatrixFactorisation(), {}, self.device)
        return own @ state.items.T


FOLD_EPOCHS = 100
"""Passes over somebody new's own history."""


def folded_users(
    new: Central,
    items: Float32,
    settings: Any,
    users: U64,
    keys: Keys,
    backbone: Backbone,
    networks: dict[str, Array],
    device: str,
) -> Float32:
    """Vectors ``[users, d]`` of new users, each trained on its own history; items and layers stay as they are."""
    block = new_block(new.train, new.world.n_items, users)
    frozen = settings.model_copy(update={"lr": 1e-30, "weight_decay": 0.0, "epochs": FOLD_EPOCHS})
    samples = draw(block, settings.negatives, keys.clients(block, "new"), settings.engine, settings.objective, device)
    start = (0.1 * keyed.normal(keys.users(block, "new users"), items.shape[1])).astype(np.float32)
    trained = train_block(
        block, samples, start, items, frozen, keys.clients(block, "new batches"), backbone, networks, device,
        lr_items=0.0, lr_users=settings.lr,
    )  # fmt: skip
    return trained.users


def fresh_factors(data: Central, keys: Keys, dim: int) -> tuple[Float32, Float32]:
    """Small normal users ``[users, d]`` and items ``[n_items, d]``."""

    def fresh(purpose: str, count: int) -> Float32:
        rows = keyed.streams(keyed.stream(keys.seed, purpose), np.arange(count, dtype=np.uint64))
        return (0.1 * keyed.normal(rows, dim)).astype(np.float32)

    return fresh("users", len(data.train)), fresh("items", data.world.n_items)


def one_round(
    state: Factors, networks: dict[str, Array], backbone: Backbone, data: Central, keys: Keys, chosen: Any, device: str
) -> Trained:
    """A round of training with everybody as one client."""
    everyone = one_client(data)
    streams = keys.clients(everyone, "negatives")
    samples = draw(everyone, chosen.negatives, streams, chosen.engine, chosen.objective, device)
    batches = keys.clients(everyone, "batches")
    return train_block(everyone, samples, state.users, state.items, chosen, batches, backbone, networks, device)


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
