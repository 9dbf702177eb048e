"""A server that descends along gradients of its item table, as in FedMF, and what it remembers from step to step."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Literal

import numpy as np

from fedrec.core.messages import Array, Float32
from fedrec.learn.adam import descended
from fedrec.methods._shared.embedding import ItemServer

WHOLE = 2**31 - 1
"""A batch size that no client reaches: one step over all its samples."""


@dataclass(frozen=True)
class GradientServer(ItemServer):
    """The table and the server's own optimiser state."""

    mean: Float32 = field(default_factory=lambda: np.zeros(0, np.float32))  # [n_items, d] first moment
    square: Float32 = field(default_factory=lambda: np.zeros(0, np.float32))  # [n_items, d] second moment
    step: int = 0

    @classmethod
    def fresh(cls, server: ItemServer) -> GradientServer:
        """Before the first step."""
        return cls(server.items, server.networks, np.zeros_like(server.items), np.zeros_like(server.items))

    def descended(self, downhill: Array, rate: float, optimizer: Literal["adam", "sgd"] = "adam") -> GradientServer:
        """One step along a negative gradient ``[n_items, d]``; Adam takes a sum and a mean alike."""
        if optimizer == "sgd":
            return replace(self, items=self.items + rate * downhill, step=self.step + 1)
        step = self.step + 1  # moments are those of the negative gradient, hence the negative rate
        items, mean, square = descended(self.items, self.mean, self.square, downhill, -rate, step)
        return replace(self, items=items, mean=mean, square=square, step=step)
