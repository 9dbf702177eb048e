"""Memory for the training of a block, used again and again, and tables on their way between it and the caller.

What is larger than an allocator keeps at hand comes from the system as fresh pages, each cleared before it is filled:
for what a round writes, most of it changes of every client's tables and generator, that takes longer than filling
it, and for the temporaries of every step several times their arithmetic.
"""

from __future__ import annotations

import math
import weakref

import numpy as np
import torch
from torch import Tensor

from fedrec.core.messages import Float32
from fedrec.data.ragged import Int64, consecutive

LARGE = 1 << 20
"""Numbers from which on a room is kept; the allocator keeps smaller ones at hand itself."""
_free: list[Float32] = []


def room(shape: tuple[int, ...], device: str) -> Float32:
    """An array to be filled, free again as soon as nobody holds it.

    It is page-locked where it is filled from another device, which copies it much faster.
    """
    if device.startswith("cuda"):
        return np.asarray(torch.empty(shape, pin_memory=True).numpy())
    size = math.prod(shape)
    if size < LARGE:
        return np.empty(shape, np.float32)
    memory = _kept(size)
    array = np.frombuffer(memory.data, np.float32, size)  # whoever holds a part of it holds this array
    weakref.finalize(array, _free.append, memory).atexit = False
    return array.reshape(shape)


def _kept(size: int) -> Float32:
    """Free memory of about this size; where there is none, other blocks are about to come and all goes back."""
    for at, memory in enumerate(_free):
        if size <= len(memory) <= 1.25 * size:
            return _free.pop(at)
    _free.clear()
    return np.empty(size, np.float32)


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


def own_tables(private: Float32, clients: Int64, scratch: Scratch) -> Tensor:
    """Private tables of a chunk."""
    tables, device = torch.from_numpy(np.asarray(private)), scratch.device
    out = scratch.take("V", len(clients), *private.shape[1:])
    order = np.argsort(clients)
    if device != "cpu" and consecutive(clients[order]):  # one copy to the device, put in order there
        first = int(clients.min())
        there = tables[first : first + len(clients)].to(device)
        return torch.index_select(there, 0, torch.from_numpy(clients - first).to(device), out=out)
    for position, client in enumerate(clients):
        out[position].copy_(tables[client])
    return out


def put(into: Float32, clients: Int64, values: Tensor) -> None:
    """``into[clients] = values`` from any device, without a copy in between where they are a run."""
    target = torch.from_numpy(np.asarray(into))
    order = np.argsort(clients)
    if values.device.type != "cpu" and consecutive(clients[order]):
        first = int(clients[order[0]])
        target[first : first + len(clients)].copy_(values.index_select(0, torch.from_numpy(order).to(values.device)))
        return
    for position, client in enumerate(clients):
        target[client].copy_(values[position])
