"""FedLightGCN: the mean of item embeddings before convolution; each client convolves over its own graph.

The weighted-summation baseline of FedCIA (section 6.1.2) on LightGCN (He et al., SIGIR 2020). Item embeddings are
averaged before convolution, so that the clients' different graphs do not enter the mean (section 6.1.4).
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any, ClassVar, Literal

import numpy as np
from pydantic import Field

from fedrec.backbones.lightgcn import graph_scores
from fedrec.backbones.tables import ItemTable
from fedrec.core.block import Block
from fedrec.core.messages import Float32
from fedrec.core.method import Card, Keys, Update
from fedrec.data.ragged import Int32
from fedrec.learn.torch.graphs import train_graphs
from fedrec.methods._shared.embedding import EmbeddingSettings, Init, ItemUpload, LocalModel, SharedTable
from fedrec.methods._shared.server_steps import MeanOfChanges


class FedLightGcnSettings(EmbeddingSettings):
    backbone: Literal["mf"] = Field("mf", description="scores after convolution are dot products")
    init: Init = Field("normal", description="fresh embeddings")
    init_scale: float = Field(0.1, gt=0, description="scale of fresh embeddings")
    objective: Literal["bpr"] = Field("bpr", description="pairwise loss")
    negatives: int = Field(1, ge=1, description="negatives per positive")
    layers: int = Field(3, ge=1, description="layers of convolution")


class FedLightGcn(MeanOfChanges, SharedTable):
    """Q = (1/K) sum_k Q_k, before convolution."""

    name = "fedlightgcn"
    Settings = FedLightGcnSettings
    enough: ClassVar[dict[str, Any]] = {"epochs": 3, "lr": 0.1}
    enough_rounds = 10
    card = Card(
        title="FedLightGCN: the mean of item embeddings before convolution over each client's own graph",
        paper="the baseline FedLightGCN of FedCIA (SIGIR 2025), on LightGCN (He et al., SIGIR 2020)",
        private="user vectors, interactions and their graph",
        upload="change of the item table before convolution",
        sum_suffices=True,
        robust="rows",
        departures=("the optimiser starts fresh each round",),
    )

    def local_update(self, private: Any, download: Any, block: Block, keys: Keys) -> Update[Any, Any]:
        chosen = self.settings
        trained = train_graphs(
            block, private.users, download.items, chosen, chosen.negatives, chosen.layers,
            keys.clients(block, "negatives"), keys.clients(block, "batches"), self.device,
        )  # fmt: skip
        local = LocalModel(download.items, trained.rows, {})
        return Update(replace(private, users=trained.users), ItemUpload(trained.rows, {}), trained.loss, local)

    def score(self, private: Any, model: Any, block: Block, items: Int32 | None = None) -> Float32:
        table = ItemTable(model.items, getattr(model, "changes", None))
        scores = graph_scores(block, private.users, table, self.settings.layers)
        return scores if items is None else np.take_along_axis(scores, items, axis=1)
