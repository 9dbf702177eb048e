"""One step of gradient descent on both tables with torch's own gradients of a paper's plain objective.

Slower than :mod:`fedrec.methods.two_views.closed`, because the enhanced table and its gradient exist; it is the
reference, and the only engine on other devices than the CPU, for the alternatives of Fed3CR's Figure 4 and Table IV,
for scorers with layers, Adam, weight decay and clients that end early.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import torch
from torch import Tensor

from fedrec.backbones.base import Backbone
from fedrec.learn.torch.optimisers import Dense
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
    number: int,
    working: Tensor | None = None,
) -> Tensor:
    """Change ``state`` by step ``number`` (1, 2, ...); returns each sample's recommendation loss ``[active, width]``.

    ``working`` ``[clients]`` is 0 for those that have ended their epochs and do not move any more.
    """
    whole = {"shared": state.shared, "private": state.private, "users": state.users, **state.networks}
    upto = {name: batch.users if name in PER_USER else batch.active for name in whole}
    own: Leaves = {name: value[: upto[name]].detach().requires_grad_() for name, value in whole.items()}
    total, each = loss(own, batch, positives, chosen, backbone)
    found = torch.autograd.grad(total, list(own.values()), allow_unused=True)
    with torch.no_grad():
        for (name, value), gradient in zip(whole.items(), found, strict=True):
            rate = rate_of(name, chosen)
            if gradient is None or not rate:
                continue
            if name not in state.optimisers:
                state.optimisers[name] = Dense(value, rate, chosen.optimizer == "adam", chosen.weight_decay)
            own_optimiser = state.optimisers[name]
            own_optimiser.lr = rate
            before = None if working is None else value[: upto[name]].clone()
            own_optimiser.step(number, upto[name], gradient)
            if working is not None and before is not None:
                mask = working[state.client_of_user[: batch.users]] if name in PER_USER else working[: batch.active]
                ended = (mask == 0).view(-1, *[1] * (value.ndim - 1))
                value[: upto[name]].copy_(torch.where(ended, before, value[: upto[name]]))
    return each.detach()


def rate_of(name: str, chosen: Objective) -> float:
    """The rate of one of the leaves."""
    if name == "shared":
        return chosen.lr_items * chosen.shared_rate
    if name == "private":
        return chosen.lr_items * chosen.private_rate
    return chosen.lr_transfer if name.startswith("transfer_") else chosen.lr
