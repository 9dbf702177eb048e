"""What Fed3CR's mechanism is plugged into (Figure 8): the other method's own algorithm around Fed3CR's objective.

The downloaded table is the consensus, a private table stands beside it, and the rest is the other method's: its score
function, which parameters move together in local training, and its server step.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from fedrec.methods._shared.embedding import ItemServer
from fedrec.methods.fedmf import FedMf, FedMfSettings, GradientServer


@dataclass(frozen=True)
class Base:
    """A method to plug into."""

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
            {"lr": 0.0, "private_rate": 0.0, "lr_transfer": 0.0, "epochs": 1, "batch_size": FedMf.whole,
             "optimizer": "sgd", "reduction": "mean", "weight_decay": 0.0, "tolerance": 0.0},
        ),
        gradients=True,
    ),
    "fedncf": Base("ncf"),
    # first the score function with the tables fixed, then the tables with the score function fixed
    "pfedrec": Base("affine", ({"lr_items": 0.0}, {"lr": 0.0, "lr_transfer": 0.0}), common_start=True),
    "fedrap": Base("affine", common_start=True),
}  # fmt: skip


def with_moments(server: ItemServer) -> GradientServer:
    """FedMF's server: the table, and the state of the optimiser that descends along gradients."""
    zero = np.zeros_like(server.items)
    return GradientServer(server.items, server.networks, zero, zero.copy(), 0)


def descended(server: GradientServer, mean: ItemServer, rate: float) -> GradientServer:
    """FedMF's server step along the mean change of the consensus; networks become the clients' mean.

    Its optimiser is Adam, which takes a sum and a mean alike.
    """
    own = FedMf(FedMfSettings(server_lr=rate))
    return own.descend(replace(server, networks=mean.networks), mean.items)
