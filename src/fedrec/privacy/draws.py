"""Uniform numbers for a client's upload: keyed for simulation, from the system for deployment.

Keyed numbers make a run repeatable, but whoever knows the seed can draw them again and take the noise off;
and SplitMix64 can be run backwards from one noise value seen in the open (a row that did not change). They
are for simulation. A client that faces a real server uses :class:`SystemDraws`.
"""

from __future__ import annotations

import os

import numpy as np
from numpy.typing import NDArray

from fedrec import keyed
from fedrec.core.block import Block
from fedrec.core.method import Keys
from fedrec.data.ragged import Int64


class KeyedDraws:
    """Numbers of one field that depend on (seed, round, client, purpose) and the place within the client alone."""

    def __init__(self, keys: Keys, block: Block, purpose: str, start: Int64) -> None:
        self.streams = keys.clients(block, purpose)  # [clients]
        self.start = start  # [clients + 1]

    def uniform(self, first: int, last: int, count: int) -> NDArray[np.float64]:
        """``[last - first, count]`` numbers in [0, 1) for the field's rows ``first .. last``."""
        row = np.arange(first, last)
        owner = np.searchsorted(self.start, row, side="right") - 1
        # value i of a client's stream is mix(key + (i + 1) * GOLDEN): a row begins where the one before it ended
        before = ((row - self.start[owner]) * count).astype(np.uint64) * np.uint64(keyed.GOLDEN)
        return keyed.uniform(self.streams[owner] + before, count)


class SystemDraws:
    """Numbers from the operating system's cryptographic generator: secret, and never the same twice."""

    def uniform(self, first: int, last: int, count: int) -> NDArray[np.float64]:
        size = (last - first) * count
        words = np.frombuffer(os.urandom(8 * size), np.uint64).reshape(last - first, count)
        return (words >> np.uint64(11)).astype(np.float64) * 2.0**-53


def laplace(uniform: NDArray[np.float64]) -> NDArray[np.float64]:
    """Laplace(0, 1) by the inverse distribution function, as in :func:`fedrec.keyed.laplace`."""
    centred = uniform - 0.5
    inside = np.maximum(1.0 - 2.0 * np.abs(centred), 2.0**-53)
    return np.asarray(-np.sign(centred) * np.log(inside))


def normal(uniform: NDArray[np.float64]) -> NDArray[np.float64]:
    """Standard normal numbers, as many as given (an even number a row): Box-Muller, both halves used."""
    radius = np.sqrt(-2.0 * np.log1p(-uniform[:, 0::2]))
    angle = 2.0 * np.pi * uniform[:, 1::2]
    numbers = np.empty_like(uniform)
    np.multiply(radius, np.cos(angle), out=numbers[:, 0::2])
    np.multiply(radius, np.sin(angle), out=numbers[:, 1::2])
    return numbers
