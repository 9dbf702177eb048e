"""FedIAR's settings, what its server and clients keep, and its pairs of item tables."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, ClassVar, Literal

import numpy as np
from numpy.typing import NDArray
from pydantic import Field

from fedrec.core import messages
from fedrec.core.messages import Array, Float32, Rows, per_client, per_user
from fedrec.core.settings import TrainingSettings, folder_on_disk, memory_before_disk
from fedrec.data.ragged import Int32
from fedrec.methods._shared.embedding import Init


class FedIarSettings(TrainingSettings):
    """Settings of FedIAR (section 4.1: d = 32, one local epoch, batches of 256, four negatives)."""

    dim: int = Field(32, ge=1, description="embedding dimension d")
    epochs: int = Field(1, ge=1, description="local epochs per round (E)")
    batch_size: int = Field(256, ge=1, description="mini-batch size")
    lr: float = Field(0.1, gt=0, description="rate of user vectors, score function and hypernetwork")
    lr_items: float = Field(20.0, gt=0, description="rate of the global item table")
    private_rate: float = Field(
        1.0, ge=0, description="rate of the local item table as a multiple of lr_items (with optimizer=sgd)"
    )
    optimizer: Literal["adam", "sgd"] = Field("sgd", description="local optimiser, fresh each round")
    objective: Literal["bce"] = Field("bce", description="pointwise loss (Eq. 20)")
    engine: Literal["auto", "torch"] = Field("auto", description="batched torch trains this method")
    warmup: int = Field(10, ge=0, description="rounds in which local and global embeddings are identical")
    gate: Literal["network", "sum", "equal"] = Field(
        "network", description="ALGF, the two views added (w/o ALGF, Table 3), or their mean"
    )
    gate_hidden: int = Field(8, ge=1, description="hidden units of the gate network")
    hyper_hidden: int = Field(16, ge=1, description="hidden units of the hypernetwork")
    scorer: Literal["affine", "mlp"] = Field("affine", description="score function S (the paper leaves it open)")
    scorer_start: Literal["common", "own"] = Field(
        "common", description="fresh score functions: the same for all, as in PFedRec, or drawn for each user"
    )
    explore: bool = Field(True, description="dual-view exploration on the server (w/o IEDE, Table 3: false)")
    mu_d: float = Field(0.5, ge=0, description="weight of the dimension view (mu_d)")
    mu_n: float = Field(0.5, ge=0, description="weight of the sample view (mu_n)")
    server_lr: float | None = Field(
        None, gt=0, description="the server's rate eta (Eq. 17) [lr_items, at most the number of items]"
    )
    sample_view: Literal["density", "printed"] = Field(
        "density", description="matrices of L_n: divided by n as Eq. 4 is, or as Eq. 16 prints them"
    )
    gamma: float = Field(1e-2, gt=0, description="added to matrices to keep them regular (gamma)")
    clusters: int = Field(16, ge=1, description="truncation of the Dirichlet process (M)")
    concentration: float = Field(1.0, gt=0, description="concentration of the Dirichlet process (alpha)")
    init: Init = Field("uniform", description="fresh embeddings")
    init_scale: float = Field(0.2, gt=0, description="scale of fresh user vectors and score functions")
    items_scale: float = Field(0.01, gt=0, description="scale of the fresh item table")
    private_budget_mb: int = memory_before_disk(4096, "local item tables")
    private_dir: str | None = folder_on_disk()


@dataclass(frozen=True)
class IarServer:
    """Z_g and the state of the mixture, for a warm start."""

    items: Float32  # [n_items, d]
    mixture: dict[str, NDArray[np.float64]] = field(default_factory=dict)
    round: int = 0
    networks: ClassVar[dict[str, Array]] = {}
    """None: score functions stay with the clients."""


@dataclass(frozen=True)
class IarPrivate(messages.Private):
    """u_k, Theta_k, Psi_k and Z_k; never leave."""

    users: Float32 = per_user()  # [users, 2 d] u | theta
    bias: Float32 = per_user()  # [users]
    tables: Float32 = per_client()  # [clients, n_items, d] Z_k, zeros during warm-up
    own: NDArray[np.uint8] = per_client()  # [clients] whether Z_k has begun
    networks: dict[str, Array] = per_client()  # [clients, ...] Psi_k


@dataclass(frozen=True)
class PairedTables:
    """``[z_local | z_global]`` of every client and item, worked out as rows are asked for."""

    local: Float32 | None  # [clients, n_items, d]; None: the same as the global one
    common: Float32  # [n_items, d]
    changes: Rows | None = None  # of the global one, client by client

    @property
    def shape(self) -> tuple[int, int, int]:
        return (0 if self.local is None else len(self.local), len(self.common), 2 * self.common.shape[1])

    ndim = 3

    def views(self, client: int) -> tuple[Float32 | None, Float32, Int32, Float32]:
        """A client's local table, the global one, and rows of the latter that it has changed, with their changes."""
        local = None if self.local is None else self.local[client]
        if self.changes is None:
            return local, self.common, np.empty(0, np.int32), np.empty((0, self.common.shape[1]), np.float32)
        own = slice(int(self.changes.start[client]), int(self.changes.start[client + 1]))
        return local, self.common, self.changes.ids[own], self.changes.values[own]

    def __getitem__(self, which: tuple[Any, Any]) -> Float32:
        clients, ids = which
        common = self.common[ids]
        return np.concatenate([common if self.local is None else self.local[clients, ids], common], 1)
