"""FedAvg: the mean of item tables, weighted by how much data a client has.

McMahan et al., "Communication-efficient learning of deep networks from decentralized data", AISTATS 2017;
as the baseline FedAvg of FedCA (section 4: p_u = |D_u| / |D|).
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from fedrec.core.block import Block
from fedrec.core.messages import Limit, per_client
from fedrec.core.method import Keys
from fedrec.data.ragged import Int64
from fedrec.learn.trained import Trained
from fedrec.methods._shared.embedding import (
    EmbeddingMethod,
    ItemDownload,
    ItemServer,
    ItemUpload,
    UserVectors,
    vectors_stay,
)
from fedrec.methods._shared.server_steps import MeanOfChanges


@dataclass(frozen=True)
class WeightedUpload(ItemUpload):
    """Changes, and the number of training interactions they come from."""

    sizes: Int64 = per_client(protect=False, low=0, high=Limit.OWNED)  # [clients]


class FedAvg(MeanOfChanges, EmbeddingMethod[ItemServer, UserVectors, WeightedUpload, ItemDownload]):
    """Q = sum_u (|D_u| / |D|) Q_u."""

    name = "fedavg"
    Upload = WeightedUpload
    card = vectors_stay(
        title="FedAvg: the mean of the clients' item tables, weighted by the size of their data",
        paper="McMahan et al., AISTATS 2017; as the baseline FedAvg of FedCA (section 4)",
        upload="change of the item table (and network), and the number of training interactions",
        sum_suffices=True,
        robust="rows",
        departures=("the number of interactions leaves the client without noise",),
    )

    def upload(self, trained: Trained, download: ItemDownload, block: Block, keys: Keys) -> WeightedUpload:
        return WeightedUpload(trained.rows, trained.networks, block.sizes.astype(np.int64))

    def weights(self, upload: WeightedUpload) -> Int64:
        return upload.sizes

    def largest_weight(self, n_items: int, users: int) -> float:
        return float(n_items * users)
