"""FedMF: matrix factorisation with gradients as the exchange.

Chai et al., "Secure federated matrix factorization", IEEE Intelligent Systems 2020. Each client improves
its own user vector with the downloaded table, then sends the gradient of its loss with respect to that
table; the server descends along the sum. (The original encrypts the gradients; here only the sum is needed,
so secure aggregation can take that place.)
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any, Literal

import numpy as np
from pydantic import Field

from fedrec.core.block import Block, World
from fedrec.core.method import Keys, Update
from fedrec.core.sums import Sums
from fedrec.methods._shared.embedding import (
    EmbeddingSettings,
    ItemServer,
    ItemUpload,
    LocalModel,
    SharedTable,
    vectors_stay,
)
from fedrec.methods._shared.server_steps import WHOLE, GradientServer, MeanOfChanges


class FedMfSettings(EmbeddingSettings):
    exchange: Literal["gradients", "parameters"] = Field(
        "gradients",
        description="what is averaged: gradients (the paper), or tables (FedCIA's weighted summation); always tables "
        "with layers or attention (backbone=ncf, sasrec), which are not matrix factorisation",
    )
    server_optimizer: Literal["adam", "sgd"] = Field("adam", description="how the server descends the gradient")
    server_lr: float = Field(0.05, gt=0, description="the server's learning rate")


class FedMf(MeanOfChanges, SharedTable):
    """Gradients of the item table are summed on the server; user vectors stay."""

    name = "fedmf"
    Settings = FedMfSettings
    card = vectors_stay(
        title="FedMF: clients send gradients of the item table, the server descends",
        paper="Chai et al., IEEE Intelligent Systems 2020",
        upload="gradient of the loss with respect to the item table (or the table's change: exchange=parameters)",
        sum_suffices=True,
        robust="bound+rows",
        departures=(
            "no homomorphic encryption: a sum suffices, so secure aggregation can protect it",
            "implicit feedback with BCE instead of ratings, as in the papers that use it as a baseline",
            "the server descends with Adam (server_optimizer=sgd for plain descent)",
            "with a scoring model other than the dot product, tables and networks are averaged (exchange=parameters)",
        ),
    )

    def start_server(self, world: World, keys: Keys) -> ItemServer:
        base: ItemServer = super().start_server(world, keys)
        return GradientServer.fresh(base)

    def local_update(self, private: Any, download: Any, block: Block, keys: Keys) -> Update[Any, Any]:
        if self.settings.exchange == "parameters" or download.networks:
            return super().local_update(private, download, block, keys)
        improved = self.train(private.users, download.items, {}, block, keys, lr_items=0.0)
        once = self.settings.model_copy(update={"epochs": 1, "batch_size": WHOLE, "optimizer": "sgd"})
        descent = self.train(improved.users, download.items, {}, block, keys, chosen=once, lr_users=0.0, lr_items=1.0)
        kept = replace(private, users=improved.users)
        # rows hold minus the gradient: the change that a step of rate one would make
        local = LocalModel(download.items, None, {})
        return Update(kept, ItemUpload(descent.rows, {}), improved.loss, local)

    def finish(self, server: Any, sums: Sums, keys: Keys) -> ItemServer:
        if self.settings.exchange == "parameters" or server.networks:
            moved: ItemServer = super().finish(server, sums, keys)
            return moved
        chosen, downhill = self.settings, sums["items"].astype(np.float32)  # along the summed negative gradient
        stepped: GradientServer = server.descended(downhill, chosen.server_lr, chosen.server_optimizer)
        return stepped if sums.count else server
