"""The torch twin of :mod:`fedrec.keyed` and :mod:`fedrec.learn.shuffle`, on any device.

Words are int64 tensors that hold the same 64 bits; products wrap as unsigned ones do, and right shifts are
made logical by masking.
"""

from __future__ import annotations

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from fedrec import keyed
from fedrec.learn import shuffle


def signed(word: int) -> int:
    """The int64 with the same bits."""
    return word - (1 << 64) if word >= 1 << 63 else word


_GOLDEN, _MIX_1, _MIX_2 = signed(keyed.GOLDEN), signed(keyed.MIX_1), signed(keyed.MIX_2)


def from_words(words: keyed.U64, device: str | torch.device = "cpu") -> Tensor:
    """A tensor with the bits of numpy's words."""
    return torch.from_numpy(np.ascontiguousarray(words).view(np.int64).copy()).to(device)


def shifted(value: Tensor, by: int) -> Tensor:
    """Logical right shift."""
    return (value >> by) & ((1 << (64 - by)) - 1)


def mix(value: Tensor) -> Tensor:
    """SplitMix64's finaliser, elementwise."""
    value = (value ^ shifted(value, 30)) * _MIX_1
    value = (value ^ shifted(value, 27)) * _MIX_2
    return value ^ shifted(value, 31)


def word(keys: Tensor, index: Tensor) -> Tensor:
    """Value ``index`` of each stream."""
    return mix(keys + (index + 1) * _GOLDEN)


def below(words: Tensor, n: Tensor) -> Tensor:
    """Words brought to ``0 .. n - 1`` by their upper half; bias at most ``n / 2^32``."""
    return (shifted(words, 32) * n) >> 32


def orders(counts: NDArray[np.int64], keys: Tensor, epochs: int) -> Tensor:
    """The permutations of all clients and epochs, flat: client after client, epoch after epoch, int32.

    ``keys`` are the clients' streams. Clients of similar size should be neighbours: runs of equal
    ``bits_of(n)`` are done together.
    """
    device = keys.device
    bits = np.array([shuffle.bits_of(int(n)) for n in counts])
    cuts = np.flatnonzero(np.diff(bits)) + 1
    parts = [torch.zeros(0, dtype=torch.int32, device=device)]
    when = torch.arange(epochs, device=device) + shuffle.EPOCHS_AT
    for run in np.split(np.arange(len(counts)), cuts):
        if len(run) == 0:
            continue
        b = int(bits[run[0]])
        mask, shift = (1 << b) - 1, (b + 1) // 2
        here = slice(int(run[0]), int(run[-1]) + 1)
        streams = word(keys[here, None], when[None, :])  # [clients, epochs]
        value = torch.arange(1 << b, dtype=torch.int32, device=device)[None, None, :]
        for index in range(shuffle.ROUNDS):
            drawn = mix(streams + signed((index + 1) * keyed.GOLDEN & (1 << 64) - 1))
            times = ((drawn & mask) | 1).to(torch.int32)[..., None]
            plus = (shifted(drawn, 32) & mask).to(torch.int32)[..., None]
            value = (value * times + plus) & mask  # int32 products wrap; the low bits are right
            value = value ^ (value >> shift)
        limit = torch.from_numpy(counts[here].astype(np.int32)).to(device)[:, None, None]
        parts.append(value[value < limit])
    return torch.cat(parts)
