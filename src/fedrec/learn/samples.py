"""What a client learns from in one round: its positives and keyed uniform negatives, in compact rows.

For each positive, ``negatives`` items are drawn once a round, uniformly from the items outside the user's
``exclude`` list. Draw ``q`` of a client takes word ``q`` of the client's stream to a rank among the free
items, and the rank to the item itself: no rejection, so no draw can fail or loop, and every engine
(numpy, numba, torch) gets the same samples. A user who has every item gets no negatives.

Samples of a client lie user by user, each positive followed by its negatives (``bce``), or as pairs of the
positive and one negative (``bpr``). A client touches only the items in its own sample, its compact rows;
everything else in its table has no gradient and does not move.
"""

from __future__ import annotations

from typing import Literal

import numpy as np
from numpy.typing import NDArray

from fedrec import keyed
from fedrec.core.block import Block
from fedrec.data.ragged import Int32, Int64, offsets
from fedrec.errors import BadInput
from fedrec.extras import installed
from fedrec.keyed import U64
from fedrec.learn.sample_arrays import Counts, Samples, count

Objective = Literal["bce", "bpr"]


def draw(
    block: Block,
    negatives: int,
    keys: U64,
    engine: str = "auto",
    objective: str = "bce",
    device: str = "cpu",
    threads: int | None = None,
) -> Samples:
    """Draw one round's samples of every client of a block.

    ``negatives`` is the papers' N, ``keys`` ``[clients]`` one stream per client. The samples do not depend
    on ``engine``, ``device`` or ``threads``: on the CPU they come from the fused kernel where numba is there
    (unless ``engine`` is ``numpy``), on another device from torch, as tensors.
    """
    if objective not in ("bce", "bpr"):
        raise BadInput(f"objective {objective!r} is unknown; use bce or bpr")
    _check(block)
    pairs = objective == "bpr"
    if device != "cpu":
        from fedrec.learn.torch.samples import draw_torch

        return draw_torch(block, negatives, keys, pairs, device)
    if engine != "numpy" and installed("numba"):
        from fedrec.learn.kernel.samples import draw_kernel

        return draw_kernel(block, negatives, keys, pairs, threads)
    return draw_numpy(block, negatives, keys, pairs)


def _check(block: Block) -> None:
    """Ranks are only ranks in an ascending list, so a wrong block must not pass silently."""
    values, start = block.exclude.values, block.exclude.start
    if len(values) < 2:
        return
    inside = np.ones(len(values) - 1, bool)
    ends = start[1:-1]
    inside[ends[(ends > 0) & (ends < len(values))] - 1] = False
    if not (np.diff(values) > 0)[inside].all():
        raise BadInput("the block's exclude lists must ascend without repeats; sort each user's list")


def nth_free(exclude: NDArray[np.integer], start: Int64, counts: Int64, rank: Int64) -> Int64:
    """The ``rank``-th item that is not in the ascending list ``exclude[start : start + counts]``, elementwise.

    ``exclude[i] - i`` free items lie below the ``i``-th excluded one, so the answer is ``rank`` plus the
    number of excluded items with at most ``rank`` free items below them.
    """
    low, high = np.zeros_like(counts), counts.copy()
    while (low < high).any():
        middle = (low + high) // 2
        open_ = low < high
        at = np.where(open_, start + middle, 0)
        below = open_ & (exclude[at] - middle <= rank)
        low = np.where(below, middle + 1, low)
        high = np.where(open_ & ~below, middle, high)
    return rank + low


def draw_numpy(block: Block, negatives: int, keys: U64, pairs: bool) -> Samples:
    """:func:`draw` in plain numpy: the reference, and the way without numba or torch."""
    sizes = count(block, negatives, pairs)
    positives = block.train.counts
    per_user = positives * sizes.each
    owner = np.repeat(np.arange(block.n_users), per_user)  # [draws] user of each draw
    client = block.client_of_user[owner]
    index = np.arange(len(owner)) - sizes.drawn[client]
    words = keyed.mix(keys[client] + (index.astype(np.uint64) + np.uint64(1)) * np.uint64(keyed.GOLDEN))
    rank = ((words >> np.uint64(32)) * sizes.free[owner].astype(np.uint64) >> np.uint64(32)).astype(np.int64)
    exclude = block.exclude.values if len(block.exclude.values) else np.zeros(1, np.int32)
    item = nth_free(exclude, block.exclude.start[owner], block.exclude.counts[owner], rank)

    which = index - sizes.user_draw[owner]  # [draws] counted within the user
    each = sizes.each[owner]
    if pairs:
        positive = block.train.values[block.train.start[owner] + which // np.maximum(each, 1)]
        touched = np.concatenate([positive, item])
        touched_client = np.concatenate([client, client])
        user, label = owner.astype(np.int32), np.ones(len(owner), np.uint8)
    else:
        total = int(sizes.start[-1])
        items, user = np.zeros(total, np.int64), np.zeros(total, np.int32)
        label = np.zeros(total, np.uint8)
        draw_at = sizes.user_sample[owner] + which // np.maximum(each, 1) * (1 + each) + 1 + which % np.maximum(each, 1)
        items[draw_at], user[draw_at] = item, owner
        having = block.train.owners
        place = np.arange(len(having)) - block.train.start[having]
        own_at = sizes.user_sample[having] + place * (1 + sizes.each[having])
        items[own_at], user[own_at], label[own_at] = block.train.values, having, 1
        touched, touched_client = items, block.client_of_user[user]
    return _compact(block, sizes, touched_client * np.int64(block.n_items) + touched, user, label, pairs)


def _compact(
    block: Block, sizes: Counts, place: Int64, user: NDArray[np.int32], label: NDArray[np.uint8], pairs: bool
) -> Samples:
    rows_start, rows_ids, inverse = compact_rows(place, block)
    row = (inverse - rows_start[place // max(block.n_items, 1)]).astype(np.int32)
    half = len(user)
    negative = row[half:] if pairs else None
    return Samples(sizes.start, user, row[:half], label, negative, rows_start, rows_ids)


def compact_rows(place: Int64, block: Block) -> tuple[Int64, Int32, Int64]:
    """Compact rows out of (client, item) numbers: where each client's begin, their ids, ascending, and who is where."""
    unique, inverse = np.unique(place, return_inverse=True)
    owner = unique // max(block.n_items, 1)
    start = offsets(np.bincount(owner, minlength=block.n_clients))
    return start, (unique - owner * block.n_items).astype(np.int32), inverse
