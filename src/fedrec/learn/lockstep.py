"""Many clients in step: those with most samples first, and all that are still at work make their k-th step together.

So the number of a step is one number, and whoever is still at work is a prefix of its chunk.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from fedrec.data.ragged import Int64, offsets


def largest_first(counts: Int64) -> Int64:
    """Clients that have samples (or steps), those with most first."""
    falling = np.argsort(-counts, kind="stable").astype(np.int64)
    return falling[: int((counts > 0).sum())]


def chunks(clients: Int64, fitting: Callable[[int], int]) -> Iterator[Int64]:
    """Runs of clients that train together; from position ``at`` on ``fitting(at)`` of them fit, at least one."""
    at = 0
    while at < len(clients):
        upto = at + max(1, fitting(at))
        yield clients[at:upto]
        at = upto


@dataclass(frozen=True)
class Step:
    """The k-th mini-batch of each client of a chunk that has one; numpy arrays, or tensors on a device."""

    number: int
    """k, from 0."""
    active: int
    """Clients that make this step: the first of the chunk."""
    width: int
    """Samples of the largest mini-batch."""
    even: bool
    """Whether all mini-batches are that large."""
    epoch: Any  # int64 [active]
    begin: Any  # int64 [active] where the mini-batch begins in its epoch
    first: Any  # int64 [active] and among the chunk's samples, which lie client after client, epoch after epoch
    length: Any  # int64 [active]

    def on(self, device: str) -> Step:
        """The same with tensors."""
        import torch

        parts = (self.epoch, self.begin, self.first, self.length)
        epoch, begin, first, length = (torch.from_numpy(part).to(device) for part in parts)
        return replace(self, epoch=epoch, begin=begin, first=first, length=length)

    def grid(self, padding: int) -> tuple[Any, Any]:
        """Which places of ``[active, width]`` hold a sample, and which sample; ``padding`` in the others (tensors)."""
        import torch

        along = torch.arange(self.width, device=self.first.device)
        inside = along < self.length[:, None]
        index = self.first[:, None] + along
        return inside, index if self.even else torch.where(inside, index, padding)


class Lockstep:
    """The steps of a chunk of clients with ``counts`` samples each, those with most mini-batches first."""

    def __init__(self, counts: Int64, batch_size: int, epochs: int) -> None:
        self.counts, self.batch_size, self.epochs = counts, batch_size, epochs
        self.batches = -(-counts // batch_size)
        self.steps = self.batches * epochs
        """``[clients]`` how many steps each makes."""
        self.base = offsets(counts)[:-1] * epochs

    def __len__(self) -> int:
        return int(self.steps.max(initial=0))

    def __iter__(self) -> Iterator[Step]:
        for number in range(len(self)):
            active = int(np.searchsorted(-self.steps, -number))  # clients that make more steps than that
            counts, batches = self.counts[:active], self.batches[:active]
            epoch, begin = number // batches, number % batches * self.batch_size
            length = np.minimum(counts - begin, self.batch_size)
            width = int(length.max())
            first = self.base[:active] + epoch * counts + begin
            yield Step(number, active, width, int(length.min()) == width, epoch, begin, first, length)
