"""Centralised LightGCN with BPR.

He et al., "LightGCN: simplifying and powering graph convolution network for recommendation", SIGIR 2020. Trained by
the same primitive as the federated ones: one client that holds all users.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from pydantic import Field

from fedrec.backbones.lightgcn import smoothed
from fedrec.core.messages import Float32
from fedrec.core.method import Keys
from fedrec.core.reference import Central, collected
from fedrec.core.settings import Settings
from fedrec.learn.torch.graphs import train_graphs
from fedrec.methods.references.mf import Factors, InFactors, fresh_factors, moved, one_client


class LightGcnSettings(Settings):
    """Settings of centralised LightGCN; a round is one epoch."""

    dim: int = Field(64, ge=1, description="embedding dimension d")
    layers: int = Field(3, ge=1, description="layers of convolution (K)")
    epochs: int = Field(1, ge=1, description="passes over the data per round")
    batch_size: int = Field(2048, ge=1, description="mini-batch size")
    lr: float = Field(0.01, gt=0, description="learning rate of Adam (fresh each round)")
    optimizer: Literal["adam", "sgd"] = Field("adam", description="optimiser")
    weight_decay: float = Field(1e-4, ge=0, description="L2 penalty on the embeddings in a batch (lambda)")
    negatives: int = Field(1, ge=1, description="negatives per positive")
    objective: Literal["bpr"] = Field("bpr", description="pairwise loss")
    engine: Literal["auto", "torch"] = Field("auto", description="how negatives are drawn")


@dataclass(frozen=True)
class Embeddings(Factors):
    """User and item embeddings before convolution, and after it for scoring."""

    smooth_users: Float32  # [users, d]
    smooth_items: Float32  # [n_items, d]


class LightGcn(InFactors[Embeddings]):
    """LightGCN on collected histories."""

    name = "lightgcn"
    Settings = LightGcnSettings
    card = collected(
        "LightGCN with BPR on collected histories",
        "He et al., SIGIR 2020",
        "the optimiser starts fresh each epoch, as for every method here",
    )

    def start(self, data: Central, keys: Keys) -> Embeddings:
        return self._smoothed(*fresh_factors(data, keys, self.settings.dim), data)

    def step(self, state: Embeddings, data: Central, keys: Keys) -> tuple[Embeddings, float]:
        everyone, chosen = one_client(data), self.settings
        trained = train_graphs(
            everyone, state.users, state.items, chosen, chosen.negatives, chosen.layers,
            keys.clients(everyone, "negatives"), keys.clients(everyone, "batches"), self.device, fused=False,
        )  # fmt: skip
        return self._smoothed(trained.users, moved(state.items, trained), data), float(trained.loss[0])

    def _smoothed(self, users: Float32, items: Float32, data: Central) -> Embeddings:
        return Embeddings(users, items, *smoothed(data.train, users, items, self.settings.layers))

    def vectors(self, state: Embeddings) -> tuple[Float32, Float32]:
        # somebody new has no place in the graph: its vector is learnt behind the layers
        return state.smooth_users, state.smooth_items
