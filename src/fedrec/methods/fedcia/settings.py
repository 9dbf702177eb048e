"""Settings of FedCIA."""

from __future__ import annotations

from typing import Literal

from pydantic import Field

from fedrec.core.settings import TrainingSettings
from fedrec.errors import BadInput

LARGE = 8192
"""Items from which on similarities are truncated unless asked otherwise: m x m is never built."""


class FedCiaSettings(TrainingSettings):
    """Settings of FedCIA; paper's values from its public code (the text refers to it)."""

    backbone: Literal["gfcf", "mf", "mlp", "lightgcn"] = Field("gfcf", description="the clients' model")
    dim: int = Field(0, ge=0, description="embedding dimension; 0: the paper's (mf and lightgcn 512, mlp 32)")
    lr: float = Field(0.0, ge=0, description="learning rate; 0: the paper's (mf and lightgcn 0.1, mlp 0.001)")
    epochs: int = Field(1, ge=1, description="local epochs per round (epoch_c)")
    batch_size: int = Field(4096, ge=1, description="mini-batch size")
    negatives: int = Field(1, ge=1, description="negatives per positive")
    objective: Literal["bpr"] = Field("bpr", description="pairwise loss (section 5.2.1)")
    init_scale: float = Field(
        0.0, ge=0, description="standard deviation of fresh embeddings; 0: mf and mlp 0.01, lightgcn 0.1"
    )
    layers: int = Field(3, ge=1, description="layers of lightgcn")
    k: int = Field(32, ge=1, description="singular vectors of gfcf's low-pass filter")
    alpha: float = Field(0.3, ge=0, description="weight of gfcf's low-pass filter beside the linear one")
    global_filter: Literal["mean", "normalised"] = Field(
        "mean",
        description="gfcf's global filter: the mean of the clients' (section 5.3.1), or that mean normalised "
        "by its diagonal, with a low-pass filter of the whole (the server works both out)",
    )
    beta: float = Field(60.0, ge=0, description="weight of the global filter beside the client's own (section 5.3.2)")
    align: Literal["closed", "gradient", "none"] = Field(
        "closed",
        description="how a table is aligned with the global similarity: in closed form, by gradient steps (Eq. 6), or "
        "not at all; nothing is exchanged then (the paper's rows without aggregation)",
    )
    align_steps: int = Field(100, ge=1, description="gradient steps (epoch_i)")
    align_lr: float = Field(0.1, gt=0, description="rate of the gradient steps")
    align_loss: Literal["norm", "mse"] = Field(
        "norm", description="what gradient steps minimise: the norm |E E' - C_s| (public code), or the MSE of Eq. (6)"
    )
    form: Literal["auto", "full", "truncated"] = Field(
        "auto",
        description=f"what is sent: the whole matrix, or its top singular vectors (section 5.4.2); auto: whole up to "
        f"{LARGE} items",
    )
    rank: int = Field(0, ge=0, description="singular vectors to send (L_k); 0: one percent of the items")
    mixed: Literal["none", "dims", "architectures"] = Field(
        "none",
        description="clients with different models in one federation (section 6.6): dims of a quarter, a half and the "
        "whole of dim; or mf, mlp and lightgcn",
    )
    aggregate: Literal["similarity", "within"] = Field(
        "similarity",
        description="what is averaged: item similarities, or (the paper's rival in Figure 5) the parameters of clients "
        "with the same kind and size of model, weighted by their interactions",
    )

    def check(self) -> None:
        """Refuse what does not go together."""
        if self.mixed == "dims" and self.backbone == "mlp":
            raise BadInput("mixed=dims is for tables without a network; use backbone=mf or lightgcn")
        if self.mixed == "dims" and 0 < self.dim < 4:
            raise BadInput(f"mixed=dims needs a quarter of dim, and dim={self.dim} has none; use dim=4 or more")
        if self.aggregate == "within" and self.parameter_free:
            raise BadInput("gfcf has no parameters to average; aggregate=within needs backbone=mf, mlp or lightgcn")
        if self.aggregate == "within" and (self.align != "closed" or self.form == "truncated"):
            raise BadInput("aggregate=within exchanges no similarity; leave align and form out")

    @property
    def parameter_free(self) -> bool:
        """Whether clients have filters (section 5.3) instead of models with parameters (section 5.2)."""
        return self.backbone == "gfcf" and self.mixed == "none"

    def truncates(self, n_items: int) -> bool:
        """Whether similarities or filters cross the wire as factors."""
        return self.form == "truncated" or (self.form == "auto" and n_items > LARGE)

    def sent_rank(self, n_items: int) -> int:
        """L_k (section 5.4.2)."""
        return min(self.rank or max(1, round(0.01 * n_items)), n_items)
