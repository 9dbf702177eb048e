"""Top-k: send the largest coordinates of a client's update and nothing of the rest."""

from __future__ import annotations

from dataclasses import dataclass
from math import ceil, prod

import numpy as np
from numpy.typing import NDArray

from fedrec.core.block import Block
from fedrec.core.messages import Rows
from fedrec.core.method import Keys
from fedrec.data.ragged import Int64, offsets
from fedrec.privacy.compressed import Compressed, TopK
from fedrec.privacy.fields import Part, Sent, protected, with_fields
from fedrec.privacy.link import Compression


@dataclass(frozen=True)
class KeepLargest(Compression):
    """Keep ``k = ceil(keep * n)`` of a client's n coordinates, all protected fields together.

    Coordinates that are zero are not sent. Without noise, the indices show which items a client has touched.
    """

    keep: float

    def apply(self, upload: Sent, block: Block, keys: Keys) -> Sent:
        parts = protected(upload, block)
        chosen = [self._of_client(parts, client) for client in range(block.n_clients)]
        forms = {part.name: _form(part, [own[number] for own in chosen]) for number, part in enumerate(parts)}
        return with_fields(upload, forms)

    def _of_client(self, parts: list[Part], client: int) -> list[Int64]:
        """Where in a client's own stretch of each part the kept numbers lie."""
        if not parts:
            return []
        own = [part.numbers[part.start[client] : part.start[client + 1]].reshape(-1) for part in parts]
        total = sum(int(part.coordinates[client]) for part in parts)
        sizes = [len(numbers) for numbers in own]
        magnitude = np.abs(np.concatenate(own))
        kept = largest(magnitude, max(1, ceil(self.keep * total - 1e-9)))
        ends = np.cumsum(sizes)
        cuts = np.searchsorted(kept, ends[:-1])
        return [p - (end - size) for p, end, size in zip(np.split(kept, cuts), ends, sizes, strict=True)]


def largest(magnitude: NDArray[np.floating], k: int) -> Int64:
    """Positions of the ``k`` largest values above zero, ascending; the first of equals comes first.

    >>> largest(np.array([1.0, 3.0, 0.0, 3.0, 2.0]), 2).tolist()
    [1, 3]
    """
    if k >= len(magnitude):
        return np.flatnonzero(magnitude)
    threshold = np.partition(magnitude, len(magnitude) - k)[len(magnitude) - k]
    if threshold == 0:
        return np.flatnonzero(magnitude)
    taken = magnitude > threshold
    ties = np.flatnonzero(magnitude == threshold)
    taken[ties[: k - int(taken.sum())]] = True
    return np.flatnonzero(taken)


def _form(part: Part, kept: list[Int64]) -> Compressed:
    """The field of which ``kept[c]`` are the kept positions in client c's stretch of numbers."""
    width = part.width
    counts = np.array([len(own) for own in kept], np.int64)
    before = np.repeat(part.start[:-1], counts) * width
    at = (np.concatenate(kept) if kept else np.zeros(0, np.int64)) + before  # position in all numbers
    row, column = np.divmod(at, max(1, width))
    values = part.numbers[row, column]
    table = isinstance(part.content, Rows)
    index: NDArray[np.integer] = column
    if isinstance(part.content, Rows):
        index, shape = part.content.ids[row].astype(np.int64) * width + column, (part.content.n_items, width)
    else:
        shape, counts = part.content.shape[1:], np.bincount(row, minlength=len(part.content))
    if prod(shape) < 2**31:
        index = index.astype(np.int32)
    return TopK(offsets(counts), index, values, np.array(shape, np.int64), table)
