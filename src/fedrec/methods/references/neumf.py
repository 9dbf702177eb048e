"""Centralised NeuMF: matrix factorisation and a perceptron side by side, on collected histories.

He et al., "Neural collaborative filtering", WWW 2017; the centralised reference of Fed3CR's Table II. Trained by
the same primitive as the federated methods: one client that holds all users.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import numpy as np
from pydantic import Field

from fedrec.backbones.neumf import NeuMf
from fedrec.core.messages import Array, Float32
from fedrec.core.method import Keys
from fedrec.core.reference import Central, InEpochs, collected
from fedrec.data.ragged import Int64
from fedrec.keyed import U64
from fedrec.methods._shared.embedding import fresh_network
from fedrec.methods.references.mf import CentralMfSettings, Factors, folded_users, fresh_factors, moved, one_round


@dataclass(frozen=True)
class NeuralFactors(Factors):
    """User and item embeddings, and the layers."""

    networks: dict[str, Array]


class CentralNeuMfSettings(CentralMfSettings):
    """Settings of centralised NeuMF; a round is one epoch."""

    dim: int = Field(32, ge=2, description="numbers in an embedding, half for each part")
    lr: float = Field(0.001, gt=0, description="learning rate of Adam (fresh each round)")
    weight_decay: float = Field(0.0, ge=0, description="L2 penalty added to the gradient of network layers")
    shrink: float = Field(1e-3, ge=0, lt=1, description="embeddings are shrunk by this share after each round (L2)")
    negatives: int = Field(4, ge=1, description="negatives per positive")
    objective: Literal["bce", "bpr"] = Field("bce", description="pointwise or pairwise loss")
    engine: Literal["auto", "torch"] = Field("auto", description="batched torch")


class CentralNeuMf(InEpochs[NeuralFactors]):
    """NeuMF on collected histories."""

    name = "neumf"
    Settings = CentralNeuMfSettings
    card = collected(
        "NeuMF (factorisation and perceptron side by side) on collected histories",
        "He et al., WWW 2017",
        "no pre-training of the two parts",
        "Adam starts afresh each round (epoch), so that a resumed run equals one that was not stopped",
    )

    def start(self, data: Central, keys: Keys) -> NeuralFactors:
        networks = fresh_network(NeuMf(), keys.seed, self.settings.dim)
        return NeuralFactors(*fresh_factors(data, keys, self.settings.dim), networks)

    def step(self, state: NeuralFactors, data: Central, keys: Keys) -> tuple[NeuralFactors, float]:
        trained = one_round(state, state.networks, NeuMf(), data, keys, self.settings, self.device)
        keep = np.float32(1.0 - self.settings.shrink)
        networks = {name: state.networks[name] + change[0] for name, change in trained.networks.items()}
        return NeuralFactors(trained.users * keep, moved(state.items, trained) * keep, networks), float(trained.loss[0])

    def score(self, state: NeuralFactors, data: Central, users: Int64) -> Float32:
        return NeuMf().scores(state.users[users], state.items, state.networks)

    def score_new(self, state: NeuralFactors, data: Central, new: Central, users: U64, keys: Keys) -> Float32:
        own = folded_users(new, state.items, self.settings, users, keys, NeuMf(), state.networks, self.device)
        return NeuMf().scores(own, state.items, state.networks)
