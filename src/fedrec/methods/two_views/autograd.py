"""One step of gradient descent on both tables with torch's own gradients of a paper's plain objective.

Slower than :mod:`fedrec.methods.two_views.closed`, because the enhanced table and its gradient exist; it is the
reference, and the only engine on other devices than the CPU, for the alternatives of Fed3CR's Figure 4 and Table IV,
for scorers with layers, weight decay and clients that end early.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import torch
from torch import Tensor

from fedrec.backbones.base import Backbone
from fedrec.methods.two_views.step import Batch, Objective, Positives, State

if TYPE_CHECKING:
    from fedrec.methods.two_views.step import Leaves, Loss

PER_USER = ("users", "bias")


def autograd_step(
    state: State,
    batch: Batch,
    positives: Positives,
    chosen: Objective,
    backbone: Backbone,
    loss: Loss,
    working: Tensor | None = None,
) -> Tensor:
    """Change ``state`` by one step; returns each sample's recommendation loss ``[active, width]``.

    ``working`` ``[clients]`` is 0 for those that have ended their epochs and do not move any more.
    """
    active = batch.active
    own: Leaves = {
        "shared": state.shared[:active].detach().requires_grad_(),
        "private": state.private[:active].detach().requires_grad_(),
        "users": state.users[: batch.users].detach().requires_grad_(),
        **{
            name: value[: batch.users if name in PER_USER else active].detach().requires_grad_()
            for name, value in state.networks.items()
        },
    }
    total, each = loss(own, batch, positives, chosen, backbone)
    found = torch.autograd.grad(total, list(own.values()), allow_unused=True)
    with torch.no_grad():
        for (name, leaf), gradient in zip(own.items(), found, strict=True):
            if gradient is not None:
                if chosen.weight_decay:
                    gradient = gradient.add(leaf, alpha=chosen.weight_decay)
                if working is not None:
                    own_working = working[state.client_of_user[: batch.users]] if name in PER_USER else working[:active]
                    gradient = gradient * own_working.view(-1, *[1] * (gradient.ndim - 1))
                leaf.detach().sub_(gradient, alpha=rate_of(name, chosen))
    return each.detach()


def rate_of(name: str, chosen: Objective) -> float:
    """The rate of one of the leaves."""
    if name in ("shared", "private"):
        return chosen.lr_items * (chosen.private_rate if name == "private" else 1.0)
    return chosen.lr_transfer if name.startswith("transfer_") else chosen.lr
