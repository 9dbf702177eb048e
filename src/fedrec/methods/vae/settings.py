"""Settings of the federated variational autoencoders."""

from __future__ import annotations

from typing import Literal

from pydantic import Field

from fedrec.core.settings import PrivacySettings, folder_on_disk, memory_before_disk


class VaeSettings(PrivacySettings):
    """Settings of the federated variational autoencoders; defaults from FedDAE's experiments."""

    dim: int = Field(256, ge=1, description="d of the latent variable; layers m-3d-2d-d (m-768-512-256)")
    epochs: int = Field(10, ge=1, description="local epochs per round (E)")
    lr: float = Field(1e-3, gt=0, description="learning rate on the clients (eta)")
    server_lr: float = Field(1e-3, gt=0, description="learning rate on the server (eta in lines 7 and 8)")
    server_optimizer: Literal["adam", "sgd"] = Field("adam", description="how the server descends")
    local_shared: Literal["frozen", "descent", "adam"] = Field(
        "descent",
        description="what happens to a client's copies of the shared layers in its local epochs: they stay as "
        "downloaded, learn by plain gradient descent (Algorithm 1, line 4), or by an Adam of their own (many times "
        "slower)",
    )
    alpha: float = Field(
        0.0,
        ge=0,
        le=1,
        description="weight alpha_u of a client's loss (Eq. 7), which scales the descent of the copies; 0 stands for "
        "1/n. With 1, the copies of users with long histories diverge at the paper's rate",
    )
    local_gradient: Literal["fresh", "accumulated"] = Field(
        "fresh",
        description="what the clients' Adam sees in an epoch: its gradient, or the sum since the round began (the "
        "public code, which never clears it)",
    )
    beta: float = Field(1.0, ge=0, description="weight of the KL term once annealed (beta of Eq. 6)")
    anneal: int = Field(100, ge=0, description="rounds in which beta rises from 0; 0 starts with all of it")
    schedule: Literal["rise", "first-round"] = Field(
        "rise",
        description="beta over the rounds: rising (anneal), or full in the first round and 0 after (the public code)",
    )
    dropout: float = Field(0.5, ge=0, lt=1, description="probability that an input of the encoders is dropped")
    gradients: Literal["factored", "dense"] = Field(
        "factored",
        description="how gradients cross the wire: as the E outer products that they are sums of (many times smaller), "
        "or whole (then a sum suffices); always whole with clip, noise or compression",
    )
    sum_noise: float = Field(
        0.0,
        ge=0,
        description="deviation of Gaussian noise of every user, drawn once for the sum of all gradients: that sum is "
        "distributed as if each user had added noise of its own (Table 4), in a fraction of the time. It shows "
        "what noise costs but, unlike `noise`, protects nobody: the server draws it, from the run's seed",
    )
    chunk: int = Field(64, ge=1, description="users that train together; affects only speed")


class FedDaeSettings(VaeSettings):
    """Settings of FedDAE."""

    gate: Literal["linear", "mlp", "fixed"] = Field(
        "linear",
        description="how the encoders are weighted: softmax(r_u . psi_u) (the paper), a network m-d-2 (the public "
        "code), or a fixed weight (Table 3)",
    )
    weight: float = Field(0.5, ge=0, le=1, description="weight w of the global encoder with gate=fixed (Table 3)")
    local_encoder: Literal["kept", "fresh", "averaged"] = Field(
        "kept",
        description="private encoder and gate from round to round: kept (the paper); started afresh in every round and "
        "evaluated like that; or only gates started afresh, and the encoder averaged on the server like the "
        "global one (the public code)",
    )
    private_budget_mb: int = memory_before_disk(8192, "private encoders")
    private_dir: str | None = folder_on_disk()
