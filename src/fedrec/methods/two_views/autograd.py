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
from fedrec.data.ragged import Int64
from fedrec.learn.lockstep import Step
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


class Patience:
    """Which clients of a chunk still work: one ends when an epoch changes its mean loss so far by too little, as in
    FedRAP's public code."""

    def __init__(self, tolerance: float, counts: Int64, device: str) -> None:
        self.tolerance = tolerance
        self.counts = torch.from_numpy(counts).to(device)
        self.working = torch.ones(len(counts), device=device)
        self.total, self.before = torch.zeros(len(counts), device=device), torch.zeros(len(counts), device=device)

    def after(self, step: Step, found: Tensor) -> None:
        """A step with the summed losses ``[active]``; looks back where it was the last of an epoch."""
        active = slice(step.active)
        self.total[active] += found
        mean = self.total[active] / (self.counts[active] * (step.epoch + 1))
        last = step.begin + step.length >= self.counts[active]
        still = (mean - self.before[active]).abs() >= self.tolerance * self.before[active].abs()
        self.working[active] *= ~last | still | (step.epoch == 0)
        self.before[active] = torch.where(last, mean, self.before[active])
