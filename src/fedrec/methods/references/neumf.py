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
from fedrec.core.messages import Array
from fedrec.core.method import Keys
from fedrec.core.reference import Central, collected
from fedrec.methods._shared.embedding import fresh_network
from fedrec.methods.references.mf import CentralMfSettings, Factors, InFactors, fresh_factors, moved


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


class CentralNeuMf(InFactors[NeuralFactors]):
    """NeuMF on collected histories."""

    name = "neumf"
    Settings = CentralNeuMfSettings
    backbone = NeuMf()
    card = collected(
        "NeuMF (factorisation and perceptron side by side) on collected histories",
        "He et al., WWW 2017",
        "no pre-training of the two parts",
        "Adam starts afresh each round (epoch), so that a resumed run equals one that was not stopped",
    )

    def start(self, data: Central, keys: Keys) -> NeuralFactors:
        networks = fresh_network(self.backbone, keys.seed, self.settings.dim)
        return NeuralFactors(*fresh_factors(data, keys, self.settings.dim), networks)

    def step(self, state: NeuralFactors, data: Central, keys: Keys) -> tuple[NeuralFactors, float]:
        trained = self.trained(state, data, keys)
        keep = np.float32(1.0 - self.settings.shrink)
        networks = {name: state.networks[name] + change[0] for name, change in trained.networks.items()}
        return NeuralFactors(trained.users * keep, moved(state.items, trained) * keep, networks), float(trained.loss[0])

    def networks(self, state: NeuralFactors) -> dict[str, Array]:
        return state.networks
