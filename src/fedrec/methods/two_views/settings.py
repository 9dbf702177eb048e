"""FedRAP's and Fed3CR's settings, and what a client with two views of every item keeps and holds to score with."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from pydantic import Field

from fedrec.core import messages
from fedrec.core.messages import Array, Float32, Rows, per_client, per_user, shared
from fedrec.core.settings import TrainingSettings, folder_on_disk, memory_before_disk
from fedrec.methods._shared.embedding import Init
from fedrec.methods.two_views.step import Complementarity, Consistency, Optimizer, Reduction, Transfer


class TwoViewSettings(TrainingSettings):
    """Settings of methods with a shared and a private item table."""

    dim: int = Field(32, ge=1, description="embedding dimension d (section V-A4)")
    epochs: int = Field(10, ge=1, description="local epochs per round (E, section V-A4)")
    batch_size: int = Field(2048, ge=1, description="mini-batch size (section V-A4)")
    lr: float = Field(0.01, gt=0, description="rate of user vectors and score functions")
    lr_items: float = Field(0.5, ge=0, description="rate of both item tables")
    private_rate: float = Field(1.0, ge=0, description="rate of the private table as a multiple of lr_items")
    lr_transfer: float = Field(0.01, ge=0, description="rate of the generator of the transfer matrix W")
    decay: float = Field(0.97, gt=0, le=1, description="factor of all rates from round to round (exponential schedule)")
    decay_step: float = Field(
        1.0, gt=0, le=1, description="factor of all rates from one local step to the next, beside decay"
    )
    weight_decay: float = Field(0.0, ge=0, description="L2 penalty on everything that a client trains")
    tolerance: float = Field(
        0.0,
        ge=0,
        description="a client ends its epochs when its mean loss changes by less than this share from one epoch to the "
        "next",
    )
    reduction: Reduction = Field(
        "sum",
        description="how samples of a mini-batch add up: sum (Eq. 7) or mean (FedRAP's code; needs large rates)",
    )
    optimizer: Optimizer = Field("sgd", description="plain gradient descent (section V-A4), or Adam")
    objective: Literal["bce"] = Field("bce", description="pointwise loss (Eq. 7)")
    engine: Literal["auto", "torch"] = Field(
        "auto", description="gradients written out where they are (auto), or torch's own (torch)"
    )
    init: Init = Field(
        "uniform", description="fresh vectors: uniform on [0, scale], uniform on [-scale, scale], or normal"
    )
    init_scale: float = Field(0.2, gt=0, description="scale of fresh user vectors (weights of the score function)")
    scorer_start: Literal["own", "common"] = Field(
        "own", description="fresh user vectors (score functions): drawn for each user, or the same for all"
    )
    shared_scale: float = Field(0.01, ge=0, description="scale of the fresh shared table")
    private_scale: float = Field(0.01, ge=0, description="scale of the fresh private table")
    transfer: Transfer = Field(
        "none",
        description="how the consensus is enhanced: not at all, by a learnt matrix (Figure 5a), by one matrix for "
        "both views (Figure 5b), or by ACE (Eq. 9-12)",
    )
    layers: int = Field(3, ge=2, le=4, description="layers of the transfer-matrix generator F (2, 3 or 4)")
    length_scale: float = Field(10.0, gt=0, description="factor of the cosines before the softmax of Eq. 15 (alpha)")
    norm_floor: float = Field(
        0.1,
        gt=0,
        description="length below which a vector counts as this long in cosines (their gradients stay bounded)",
    )
    beta_a: float = Field(0.0, ge=0, description="weight of consistency (Eq. 19)")
    beta_o: float = Field(0.0, ge=0, description="weight of complementarity (Eq. 19)")
    consistency: Consistency = Field(
        "ranking",
        description="L_a with a softmax, L_a with Eq. 15 as printed, or the alternatives of Figure 4a (L_s, L_c)",
    )
    complementarity: Complementarity = Field(
        "orthogonal", description="L_o, or the alternatives of Figure 4b (L_2, L_m)"
    )
    private_budget_mb: int = memory_before_disk(4096, "private tables")
    private_dir: str | None = folder_on_disk()


@dataclass(frozen=True)
class TwoViewPrivate(messages.Private):
    """User vectors (weights of an affine scorer), its biases, and V; never leave."""

    users: Float32 = per_user()  # [users, d]
    bias: Float32 = per_user()  # [users]
    tables: Float32 = per_client()  # [clients, n_items, d]


@dataclass(frozen=True)
class LocalViews(messages.Model):
    """What a client holds: the downloaded C, generator and score layers, with its own changes after training."""

    items: Float32 = shared()  # [n_items, d]
    changes: Rows | None = per_client()
    networks: dict[str, Array] = shared()
    network_changes: dict[str, Array] = per_client()  # [clients, ...]
