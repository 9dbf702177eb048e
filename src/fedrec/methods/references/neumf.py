"""Centralised NeuMF: matrix factorisation and a perceptron side by side, on collected histories.

He et al., "Neural collaborative filtering", WWW 2017; the centralised reference of Fed3CR's Table II. Trained by
the same primitive as the federated methods: one client that holds all users.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import numpy as np
from pydantic import Field

from fedrec import keyed
from fedrec.backbones.neumf import NeuMf
from fedrec.core.messages import Array, Float32
from fedrec.core.method import Card, Keys
from fedrec.core.reference import Central, Reference
from fedrec.core.settings import Settings
from fedrec.data.ragged import Int64
from fedrec.keyed import U64
from fedrec.learn.samples import draw
from fedrec.learn.train import train_block
from fedrec.methods.references.mf import folded_users, one_client


@dataclass(frozen=True)
class NeuralFactors:
    """User and item embeddings, and the layers."""

    users: Float32  # [users, d]
    items: Float32  # [n_items, d]
    networks: dict[str, Array]


class CentralNeuMfSettings(Settings):
    """Settings of centralised NeuMF; a round is one epoch."""

    dim: int = Field(32, ge=2, description="numbers in an embedding, half for each part")
    epochs: int = Field(1, ge=1, description="passes over the data in a round")
    batch_size: int = Field(1024, ge=1, description="mini-batch size")
    lr: float = Field(0.001, gt=0, description="learning rate of Adam (fresh each round)")
    optimizer: Literal["adam", "sgd"] = Field("adam", description="optimiser")
    weight_decay: float = Field(0.0, ge=0, description="L2 penalty added to the gradient of network layers")
    shrink: float = Field(1e-3, ge=0, lt=1, description="embeddings are shrunk by this share after each round (L2)")
    negatives: int = Field(4, ge=1, description="negatives per positive")
    objective: Literal["bce", "bpr"] = Field("bce", description="pointwise or pairwise loss")
    engine: Literal["auto", "torch"] = Field("auto", description="batched torch")


class CentralNeuMf(Reference[NeuralFactors]):
    """NeuMF on collected histories."""

    name = "neumf"
    Settings = CentralNeuMfSettings
    one_shot = False
    rounds = 40
    card = Card(
        title="NeuMF (factorisation and perceptron side by side) on collected histories",
        paper="He et al., WWW 2017",
        private="nothing: all histories are collected",
        upload="whole histories",
        sum_suffices=True,
        departures=(
            "no pre-training of the two parts",
            "Adam starts afresh each round (epoch), so that a resumed run equals one that was not stopped",
        ),
    )

    def start(self, data: Central, keys: Keys) -> NeuralFactors:
        def embeddings(purpose: str, count: int) -> Float32:
            rows = keyed.streams(keyed.stream(keys.seed, purpose), np.arange(count, dtype=np.uint64))
            return (0.1 * keyed.normal(rows, self.settings.dim)).astype(np.float32)

        one = np.array([keyed.stream(keys.seed, "networks")], np.uint64)
        networks = {name: values[0] for name, values in NeuMf().start(one, self.settings.dim).items()}
        return NeuralFactors(embeddings("users", len(data.train)), embeddings("items", data.world.n_items), networks)

    def step(self, state: NeuralFactors, data: Central, keys: Keys) -> tuple[NeuralFactors, float]:
        everyone, chosen = one_client(data), self.settings
        samples = draw(
            everyone,
            chosen.negatives,
            keys.clients(everyone, "negatives"),
            chosen.engine,
            chosen.objective,
            self.device,
        )
        trained = train_block(
            everyone, samples, state.users, state.items, chosen, keys.clients(everyone, "batches"), NeuMf(),
            state.networks, self.device,
        )  # fmt: skip
        items = state.items.copy()
        items[trained.rows.ids] += trained.rows.values
        keep = np.float32(1.0 - chosen.shrink)
        networks = {name: state.networks[name] + change[0] for name, change in trained.networks.items()}
        return NeuralFactors(trained.users * keep, items * keep, networks), float(trained.loss[0])

    def score(self, state: NeuralFactors, data: Central, users: Int64) -> Float32:
        return NeuMf().scores(state.users[users], state.items, state.networks)

    def score_new(self, state: NeuralFactors, data: Central, new: Central, users: U64, keys: Keys) -> Float32:
        own = folded_users(new, state.items, self.settings, users, keys, NeuMf(), state.networks, self.device)
        return NeuMf().scores(own, state.items, state.networks)
