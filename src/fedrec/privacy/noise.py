"""Noise on every coordinate of an upload."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from fedrec.core.block import Block
from fedrec.core.messages import Array, Rows
from fedrec.core.method import Keys
from fedrec.extras import installed
from fedrec.privacy.draws import KeyedDraws, SystemDraws, laplace, normal
from fedrec.privacy.fields import Part, Sent, densified, protected, with_fields
from fedrec.privacy.link import Link
from fedrec.threads import over_pieces

Source = Literal["keyed", "system"]

CHUNK = 1 << 17
"""Random numbers drawn at once: temporaries stay in cache and memory stays at the dense block."""
LARGE = 1 << 22
"""Numbers from which on a compiled kernel adds keyed noise: it gives the same in less than half the time."""


@dataclass(frozen=True)
class Noise(Link):
    """``x <- x + Z``, Z independent in every coordinate: Laplace(0, b) or Normal(0, sigma^2).

    ``scale`` is b (FedCA's delta, FedCIA's delta, FedIAR's lambda) or sigma. Item rows become whole tables
    first: were only the changed rows noised, the rows without noise would name the items a client has not
    touched.
    """

    scale: float
    kind: Literal["laplace", "gaussian"] = "laplace"
    source: Source = "keyed"

    def apply(self, upload: Sent, block: Block, keys: Keys) -> Sent:
        return with_fields(upload, {part.name: self._noised(part, block, keys) for part in protected(upload, block)})

    def _noised(self, part: Part, block: Block, keys: Keys) -> Rows | Array:
        if isinstance(part.content, Rows) and not part.listed:
            whole = densified(part.content)
            part = Part(part.name, whole, whole.start, whole.values)
            numbers = part.numbers
        else:
            numbers = part.numbers.copy()
        keyed = self.source == "keyed"
        self._add(numbers, KeyedDraws(keys, block, f"noise {part.name}", part.start) if keyed else SystemDraws())
        return part.filled(numbers)

    def _add(self, numbers: NDArray[np.floating], draws: KeyedDraws | SystemDraws) -> None:
        """Add noise in place, some rows at a time."""
        rows, width = numbers.shape
        large = numbers.size >= LARGE and numbers.flags.c_contiguous
        if isinstance(draws, KeyedDraws) and large and installed("numba"):
            from fedrec.privacy import noise_kernel

            add = noise_kernel.add_laplace if self.kind == "laplace" else noise_kernel.add_gaussian
            over_pieces(add, np.diff(draws.start), (numbers, draws.start, draws.streams, self.scale))
            return
        step = max(1, CHUNK // max(1, width))
        for first in range(0, rows, step):
            last = min(rows, first + step)
            if self.kind == "laplace":
                drawn = laplace(draws.uniform(first, last, width))
            else:
                drawn = normal(draws.uniform(first, last, width + width % 2))[:, :width]
            numbers[first:last] += (self.scale * drawn).astype(numbers.dtype)
