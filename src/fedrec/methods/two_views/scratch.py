"""Memory that the steps of a chunk use again and again.

A temporary of the size of a table is larger than what an allocator keeps at hand: the system would hand out fresh
pages at every step and clear them, which costs several times the arithmetic that fills them.
"""

from __future__ import annotations

import math

import torch
from torch import Tensor


class Scratch:
    """Named temporaries on one device, for one thread; what was under a name is overwritten."""

    def __init__(self, device: str) -> None:
        self.device = device
        self._kept: dict[str, Tensor] = {}

    def take(self, name: str, *shape: int) -> Tensor:
        """A tensor of this shape with any content; the same memory for the same name."""
        size = math.prod(shape)
        kept = self._kept.get(name)
        if kept is None or len(kept) < size:
            kept = self._kept[name] = torch.empty(size, device=self.device)
        return kept[:size].view(shape)
