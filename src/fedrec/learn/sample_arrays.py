"""One round's samples of a block of clients, and how many there are of each."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from fedrec.core.block import Block
from fedrec.data.ragged import Int64, offsets


@dataclass(frozen=True)
class Samples:
    """One round's samples of a block; numpy arrays, or tensors where they were drawn on another device.

    Client ``c`` owns the samples ``start[c] .. start[c + 1]`` and the rows
    ``rows_ids[rows_start[c] : rows_start[c + 1]]``, ascending item ids.
    """

    start: Any  # int64 [clients + 1]
    user: Any  # int32 [samples] row in the block's users
    row: Any  # int32 [samples] position among the client's compact rows
    label: Any  # uint8 [samples] one for a positive
    negative: Any  # int32 [samples] position of the negative's row for pairs, else None
    rows_start: Any  # int64 [clients + 1]
    rows_ids: Any  # int32 [rows]

    @property
    def pairs(self) -> bool:
        """Whether samples are (user, positive, negative) triples, for a pairwise loss."""
        return self.negative is not None

    def on_host(self) -> Samples:
        """The same samples as numpy arrays."""
        if isinstance(self.start, np.ndarray):
            return self
        moved = {n: None if (v := getattr(self, n)) is None else v.cpu().numpy() for n in self.__dataclass_fields__}
        return Samples(**moved)


@dataclass(frozen=True)
class Counts:
    """How many samples everybody gets, before any is drawn."""

    free: Int64  # [users] items that may be drawn
    each: Int64  # [users] negatives for each positive: ``negatives``, or 0 where nothing is free
    drawn: Int64  # [clients + 1] first draw of each client
    start: Int64  # [clients + 1] first sample of each client
    user_draw: Int64  # [users] first draw of each user, counted within its client
    user_sample: Int64  # [users] first sample of each user, counted over the block


def count(block: Block, negatives: int, pairs: bool) -> Counts:
    """Sizes and offsets of a block's samples."""
    positives = block.train.counts
    free = block.n_items - block.exclude.counts
    each = np.where(free > 0, negatives, 0)
    draws = offsets(positives * each)
    drawn = draws[block.user_start]
    samples = draws if pairs else offsets(positives * (1 + each))
    own = drawn[block.client_of_user] if block.n_users else np.zeros(0, np.int64)
    return Counts(free, each, drawn, samples[block.user_start], draws[:-1] - own, samples[:-1])
