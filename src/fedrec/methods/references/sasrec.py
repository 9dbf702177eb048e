"""Centralised SASRec: the next item from the order of the last ones, on collected histories.

Kang and McAuley, "Self-attentive sequential recommendation", ICDM 2018; the ceiling for the backbone of FedCA's
Table 4. Trained by the same primitive as the federated methods: one client that holds all users.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Literal

import numpy as np
from pydantic import Field

from fedrec import keyed
from fedrec.backbones.sasrec import SasRec
from fedrec.core.messages import Array, Float32
from fedrec.core.method import Keys
from fedrec.core.reference import Central, InEpochs, collected
from fedrec.core.settings import Settings
from fedrec.data.ragged import Int64
from fedrec.methods._shared.embedding import fresh_network
from fedrec.methods.references.mf import moved, one_client


@dataclass(frozen=True)
class Attention:
    """Item table and attention layers."""

    items: Float32  # [n_items, d]
    networks: dict[str, Array]


class CentralSasRecSettings(Settings):
    """Settings of centralised SASRec; a round is one epoch."""

    dim: int = Field(64, ge=1, description="embedding dimension d")
    length: int = Field(50, ge=1, description="how many of the latest items the model reads")
    blocks: int = Field(2, ge=1, description="blocks of self-attention")
    epochs: int = Field(1, ge=1, description="passes over the sequences per round")
    batch_size: int = Field(64, ge=1, description="sequences in a mini-batch")
    lr: float = Field(0.003, gt=0, description="learning rate of Adam (fresh each round)")
    optimizer: Literal["adam", "sgd"] = Field("adam", description="optimiser")
    weight_decay: float = Field(0.0, ge=0, description="L2 penalty added to the gradient of network layers")
    shrink: float = Field(1e-3, ge=0, lt=1, description="item rows are shrunk by this share after each round (L2)")
    negatives: int = Field(1, ge=1, description="random items that each next item is compared with")
    objective: Literal["bce"] = Field("bce", description="next item against random items")
    engine: Literal["auto", "torch"] = Field("auto", description="batched torch")


class CentralSasRec(InEpochs[Attention]):
    """SASRec on collected histories."""

    name = "sasrec"
    Settings = CentralSasRecSettings
    rounds = 100
    card = collected(
        "SASRec (self-attention over the last items) on collected histories",
        "Kang and McAuley, ICDM 2018",
        "no dropout; item rows shrink a little each round instead",
        "Adam starts afresh each round (epoch), so that a resumed run equals one that was not stopped",
        "where the data has no times, each history is read in a random order of its own, the same in every run: the "
        "order in the source means nothing and would mislead",
    )

    def backbone(self) -> SasRec:
        return SasRec(self.settings.length, self.settings.blocks)

    def start(self, data: Central, keys: Keys) -> Attention:
        rows = keyed.streams(keyed.stream(keys.seed, "items"), np.arange(data.world.n_items, dtype=np.uint64))
        scale = 1 / np.sqrt(self.settings.dim)
        items = (scale * keyed.normal(rows, self.settings.dim)).astype(np.float32)
        return Attention(items, fresh_network(self.backbone(), keys.seed, self.settings.dim))

    def step(self, state: Attention, data: Central, keys: Keys) -> tuple[Attention, float]:
        from fedrec.learn.torch.sequential import train_sequences

        everyone = one_client(data)
        draws, batches = keys.users(everyone, "negatives"), keys.clients(everyone, "batches")
        trained = train_sequences(
            everyone, state.items, self.settings, draws, batches, self.backbone(), state.networks, self.device,
            negatives=self.settings.negatives,
        )  # fmt: skip
        items = moved(state.items, trained) * np.float32(1.0 - self.settings.shrink)
        networks = {name: state.networks[name] + change[0] for name, change in trained.networks.items()}
        return Attention(items, networks), float(trained.loss[0])

    def score(self, state: Attention, data: Central, users: Int64) -> Float32:
        from fedrec.learn.torch.sequential import represented

        some = one_client(replace(data, train=data.train.take(users), exclude=data.exclude.take(users)))
        return represented(some, state.items, self.backbone(), state.networks, self.device) @ state.items.T
