"""How a client of the federated variational autoencoders trains in a round."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal


@dataclass(frozen=True)
class LocalPlan:
    """How a client trains."""

    epochs: int
    """E."""
    rate: float
    """eta."""
    shared: Literal["frozen", "descent", "adam"]
    """What happens to a client's copies of the shared layers during its local epochs."""
    beta: float
    """Weight of the prior matching in this round (Eq. 6)."""
    gate: Literal["linear", "mlp", "fixed"]
    weight: float
    """Weight of the global encoder where the gate is fixed."""
    shared_rate: float = 0.0
    """Rate of plain descent of the copies: eta alpha_u, since line 3 differentiates Eq. (7)."""
    accumulate: bool = False
    """Whether Adam sees the sum of all epochs' gradients so far instead of the epoch's own."""
