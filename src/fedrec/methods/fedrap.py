"""FedRAP: a shared and a private item table, kept apart; their sum is what a client scores with.

Li et al., "Federated recommendation with additive personalization", ICLR 2024 (baseline of FedCA, Fed3CR and
FedIAR). Item ``j`` of client ``i`` is ``c_j + d_ij``, scored by an affine layer of the client; the client minimises

    BCE - lambda MSE(D_i, C) + mu |C|_1

and uploads its C, which the server averages. The two weights may rise with the round (tanh).
"""

from __future__ import annotations

import math
from typing import Literal

from pydantic import Field

from fedrec.core.method import Card
from fedrec.methods.consensus import TwoViews, TwoViewSettings


def schedule(kind: str, number: int) -> float:
    """Factor of lambda and mu in round ``number``: 1, or ``tanh(t / 10)``."""
    return math.tanh(number / 10) if kind == "tanh" else 1.0


class FedRapSettings(TwoViewSettings):
    """Settings of FedRAP."""

    lambda_: float = Field(0.01, ge=0, description="weight of the difference of the two tables (lambda)")
    mu: float = Field(0.01, ge=0, description="weight of the shared table's sparsity (mu)")
    schedule: Literal["none", "tanh"] = Field(
        "none",
        description="how lambda and mu rise with the round: not (the public code), or as tanh(t / 10) (the paper)",
    )
    reduction: Literal["sum", "mean"] = Field("mean", description="how samples of a mini-batch add up")
    lr: float = Field(0.5, gt=0, description="rate of the affine score function (network, public code: 0.5)")
    lr_items: float = Field(200.0, ge=0, description="rate of both tables (public code: 200 to 1000)")


class FedRap(TwoViews):
    """Additive personalisation: ``w . (c_j + d_ij) + b``."""

    name = "fedrap"
    Settings = FedRapSettings
    scorer = "affine"
    small = {"lr_items": 5.0}  # noqa: RUF012
    # a private table that learns as fast as the shared one memorises everything before the shared one learns
    enough = {"lr_items": 300.0, "lr": 5.0, "decay": 1.0, "private_rate": 0.003}  # noqa: RUF012
    enough_rounds = 10
    card = Card(
        title="FedRAP: shared and private item tables added up and kept apart",
        paper="Li et al., Federated recommendation with additive personalization, ICLR 2024",
        private="score function, private item table, interactions",
        upload="changes of the shared item table, all rows",
        sum_suffices=True,
        departures=(
            "both regularisers run over whole tables, as the paper's norms do",
            "the tanh schedule of lambda and mu is off by default: the public code computes it and never uses it",
        ),
    )

    def extra(self, number: int) -> dict[str, float]:
        rise = schedule(self.settings.schedule, number)
        return {"lambda_": self.settings.lambda_ * rise, "mu": self.settings.mu * rise}
