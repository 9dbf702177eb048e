"""What Fed3CR's mechanism is plugged into (Figure 8): the other method's own algorithm around Fed3CR's objective.

The downloaded table is the consensus, a private table stands beside it, and the rest is the other method's: its score
function, which parameters move together in local training, and its server step.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from fedrec.methods._shared.gradients import WHOLE


@dataclass(frozen=True)
class Base:
    """What stands around an objective: a method to plug into."""

    scorer: str
    """Its score function, as a backbone."""
    phases: tuple[dict[str, Any], ...] = field(default=({},))
    """Local training: what differs from the objective in each of its phases."""
    common_start: bool = False
    """Whether all clients start from one score function."""
    gradients: bool = False
    """Whether clients upload a gradient of the consensus, and the server descends along it."""


BASES = {
    "none": Base("mf"),
    # user vectors (and what is private) are improved with the downloaded table fixed; then its gradient, whole
    "fedmf": Base(
        "mf",
        (
            {"shared_rate": 0.0},
            {"lr": 0.0, "private_rate": 0.0, "lr_transfer": 0.0, "epochs": 1, "batch_size": WHOLE,
             "optimizer": "sgd", "reduction": "mean", "weight_decay": 0.0, "tolerance": 0.0},
        ),
        gradients=True,
    ),
    "fedncf": Base("ncf"),
    # first the score function with the tables fixed, then the tables with the score function fixed
    "pfedrec": Base("affine", ({"lr_items": 0.0}, {"lr": 0.0, "lr_transfer": 0.0}), common_start=True),
    "fedrap": Base("affine", common_start=True),
}  # fmt: skip
