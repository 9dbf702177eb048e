"""Memory for what the training of a block gives, used again as soon as nobody holds the last block's results.

Changes of every client's tables and generator are most of what a round writes. From the system they would come as
fresh pages, each cleared before it is filled, which takes longer than filling it.
"""

from __future__ import annotations

import math
import weakref

import numpy as np
import torch

from fedrec.core.messages import Float32

LARGE = 1 << 20
"""Numbers from which on a room is kept; the allocator keeps smaller ones at hand itself."""
_free: list[Float32] = []


def room(shape: tuple[int, ...], device: str) -> Float32:
    """An array to be filled; page-locked where it is filled from another device, which copies it much faster."""
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
