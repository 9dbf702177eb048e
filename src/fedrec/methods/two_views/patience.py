"""Clients that end their local epochs early, as in FedRAP's public code."""

from __future__ import annotations

import torch
from torch import Tensor

from fedrec.data.ragged import Int64
from fedrec.learn.lockstep import Step


class Patience:
    """Which clients of a chunk still work: one ends when an epoch changes its mean loss so far by too little."""

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
