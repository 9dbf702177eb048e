"""FedRAP: a shared and a private item table, kept apart; their sum is what a client scores with.

Li et al., "Federated recommendation with additive personalization", ICLR 2024 (baseline of FedCA, Fed3CR and FedIAR).
Item ``j`` of client ``i`` is ``c_j + d_ij``, scored by an affine layer of the client. The client minimises

    BCE(w_i . (c_j + d_ij) + b_i) - lambda MSE(D_i, C) + mu |C|_1

and uploads its C, which the server averages. The two weights may rise with the round (tanh). The public
code as settings:
``init=normal init_scale=0.1 shared_scale=1 private_scale=1 decay_step=0.95 weight_decay=0.0001 tolerance=0.0001``.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any, Literal

from pydantic import Field

from fedrec.core.method import Card
from fedrec.methods.registry import find
from fedrec.methods.two_views.settings import TwoViewSettings
from fedrec.methods.two_views.step import Batch, Objective, Positives, Reduction, recommendation
from fedrec.methods.two_views.views import Base, TwoViews

if TYPE_CHECKING:
    from torch import Tensor

    from fedrec.backbones.base import Backbone
    from fedrec.methods.two_views.step import Leaves, Loss


def loss(
    own: Leaves, batch: Batch, positives: Positives, chosen: Objective, backbone: Backbone
) -> tuple[Tensor, Tensor]:
    """What a mini-batch descends, summed over clients, and each sample's cross-entropy ``[clients, width]``.

    ``own`` holds C ``[clients, m, d]`` (``shared``), D (``private``), and the affine layer: w (``users``) and b.
    """
    each = recommendation(own["shared"] + own["private"], own, batch, backbone)
    return (each * batch.weight).sum() + regularisers(own["shared"], own["private"], chosen), each


def regularisers(shared: Tensor, private: Tensor, chosen: Objective) -> Tensor:
    """``- lambda MSE(D_i, C) + mu |C|_1`` over whole tables ``[clients, m, d]``, summed over clients."""
    found = shared.new_zeros(())
    if chosen.lambda_:
        found = found - chosen.lambda_ * (private - shared).square().mean((1, 2)).sum()
    if chosen.mu:
        found = found + chosen.mu * shared.abs().mean((1, 2)).sum()
    return found


def schedule(kind: str, number: int) -> float:
    """Factor of lambda and mu in round ``number``: 1, or ``tanh(t / 10)``."""
    return math.tanh(number / 10) if kind == "tanh" else 1.0


class FedRapSettings(TwoViewSettings):
    lambda_: float = Field(0.1, ge=0, description="weight of the difference of the two tables (public code: 0.1)")
    mu: float = Field(0.1, ge=0, description="weight of the shared table's sparsity (public code: 0.1)")
    schedule: Literal["none", "tanh"] = Field(
        "none",
        description="how lambda and mu rise with the round: not at all (the public code), or as tanh(t / 10) (the "
        "paper)",
    )
    reduction: Reduction = Field("mean", description="how samples of a mini-batch add up")
    lr: float = Field(0.5, gt=0, description="rate of the affine score function (network, public code: 0.5)")
    lr_items: float = Field(200.0, ge=0, description="rate of both tables (public code: 200 to 1000)")
    scorer_start: Literal["own", "common"] = Field(
        "common", description="fresh score functions: the same for all (the public code), or drawn for each user"
    )


class FedRap(TwoViews):
    """Additive personalisation: ``w . (c_j + d_ij) + b``; C becomes the mean of the clients' C."""

    name = "fedrap"
    Settings = FedRapSettings
    small = {"lr_items": 5.0}  # noqa: RUF012
    # a private table that learns as fast as the shared one memorises everything before the shared one learns
    enough = {  # noqa: RUF012
        "reduction": "sum", "epochs": 3, "lr": 0.05, "lr_items": 0.1, "private_rate": 0.003, "decay": 1.0,
        "init": "positive", "init_scale": 0.3, "shared_scale": 0.3, "private_scale": 0.0,
    }  # fmt: skip
    card = Card(
        title="FedRAP: shared and private item tables, added up but kept different",
        paper="Li et al., Federated recommendation with additive personalization, ICLR 2024",
        private="score function, private item table, interactions",
        upload="changes of the shared item table (all rows)",
        sum_suffices=True,
        departures=(
            "both regularisers cover whole tables, as the paper's norms do; in the public code, only the mini-batch's "
            "rows",
            "the tanh schedule of lambda and mu is off by default: the public code computes it and never uses it",
            "all clients start from one score function and one private table, as in the public code (scorer_start=own "
            "draws a function for each: their first gradients of the shared table then cancel, and it learns little)",
            "tables start small; in the public code they are N(0, 1) (init=normal, shared_scale=1, private_scale=1)",
            "rates fall from round to round; in the public code also by 0.95 from one local step to the next "
            "(decay_step)",
            "clients run all their epochs; in the public code a client stops when an epoch changes its mean loss by "
            "less than a factor of 1e-4 (tolerance)",
            "no weight decay; in the public code 1e-4 on everything (weight_decay), 0 in a later version",
        ),
    )

    def base(self) -> Base:
        return Base("affine")

    def plain_loss(self, number: int) -> Loss:
        """What E epochs of gradient descent on C, D_i and the affine layer follow."""
        enhanced = self.objective(number).enhanced  # what Fed3CR plugs into FedRAP (its Figure 8)
        found: Loss = find("fed3cr").plain if enhanced else loss  # type: ignore[union-attr]
        return found

    def extra(self, number: int) -> dict[str, Any]:
        rise = schedule(self.settings.schedule, number)
        return {"lambda_": self.settings.lambda_ * rise, "mu": self.settings.mu * rise}
