"""FedNCF: neural collaborative filtering, item table and layers averaged.

Perifanis and Efraimidis, "Federated neural collaborative filtering", Knowledge-Based Systems 2022; layers
32-16-8 and weight decay 0.001 as in FedCA section 6.1.
"""

from __future__ import annotations

from typing import Literal

from pydantic import Field

from fedrec.methods._shared.embedding import EmbeddingSettings, Init, vectors_stay
from fedrec.methods.fedavg import FedAvg


class FedNcfSettings(EmbeddingSettings):
    """Settings of FedNCF: those of FedAvg with a network as scorer."""

    backbone: Literal["mf", "ncf"] = Field("ncf", description="scoring model: ncf (layers) or mf (dot product)")
    init: Init = Field("uniform", description="fresh embeddings; layers need both signs")
    init_scale: float = Field(0.5, gt=0, description="scale of fresh embeddings")
    weight_decay: float = Field(0.001, ge=0, description="L2 penalty on network layers (FedCA: lambda = 0.001)")


class FedNcf(FedAvg):
    """FedAvg of an item table and a multi-layer score function; user vectors stay."""

    name = "fedncf"
    Settings = FedNcfSettings
    enough = {"epochs": 2, "lr": 0.05, "weight_decay": 0.0}  # noqa: RUF012
    enough_rounds = 40
    card = vectors_stay(
        title="FedNCF: item table and network layers averaged, weighted by the size of the data",
        paper="Perifanis and Efraimidis, KBS 2022; layers and weight decay as in FedCA section 6.1",
        upload="changes of the item table and of the layers, and the number of training interactions",
        sum_suffices=True,
        robust="rows",
        departures=(
            "only the MLP half of NeuMF, as in FedCA's NCF backbone",
            "hidden layers of 32, 16 and 8 behind an input of 2 x dim; FedCA's [32, 16, 8] at f = 16 may also mean "
            "that 32 is that input",
            "the number of interactions leaves the client without noise",
        ),
    )
