"""Drawing samples with flat tensor operations, on any device."""

from __future__ import annotations

import torch
from torch import Tensor

from fedrec.core.block import Block
from fedrec.keyed import U64
from fedrec.learn.sample_arrays import Samples, count
from fedrec.learn.torch.random import below, from_words, word


def nth_free(exclude: Tensor, first: Tensor, counts: Tensor, rank: Tensor, longest: int) -> Tensor:
    """The ``rank``-th item outside each ascending list (see :func:`fedrec.learn.samples.nth_free`)."""
    low, high = torch.zeros_like(counts), counts.clone()
    for _ in range(max(0, longest).bit_length()):
        middle = (low + high) // 2
        unsure = low < high
        at = torch.where(unsure, first + middle, 0)
        under = unsure & (exclude[at] - middle <= rank)
        low = torch.where(under, middle + 1, low)
        high = torch.where(unsure & ~under, middle, high)
    return rank + low


def draw_torch(block: Block, negatives: int, keys: U64, pairs: bool, device: str) -> Samples:
    """The same samples as :func:`fedrec.learn.samples.draw_numpy`, as tensors on ``device``."""
    sizes = count(block, negatives, pairs)

    def there(array: object) -> Tensor:
        return torch.as_tensor(array).to(device).long()

    client_of_user, each = there(block.client_of_user), there(sizes.each)
    train, train_start = there(block.train.values), there(block.train.start)
    exclude_start = there(block.exclude.start)
    exclude = train if block.exclude is block.train else there(block.exclude.values)
    if len(exclude) == 0:
        exclude = torch.zeros(1, dtype=torch.int64, device=device)
    user_draw, user_sample = there(sizes.user_draw), there(sizes.user_sample)

    draws = torch.as_tensor(block.train.counts * sizes.each).to(device)
    users = torch.arange(block.n_users, device=device)
    owner = torch.repeat_interleave(users, draws)  # [draws]
    client = client_of_user[owner]
    index = torch.arange(len(owner), device=device) - there(sizes.drawn)[client]
    rank = below(word(from_words(keys, device)[client], index), there(sizes.free)[owner])
    longest = int(block.exclude.counts.max(initial=0))
    item = nth_free(exclude, exclude_start[owner], exclude_start.diff()[owner], rank, longest)

    which, wide = index - user_draw[owner], each[owner].clamp(min=1)
    total = int(sizes.start[-1])
    if pairs:
        touched = torch.cat([train[train_start[owner] + which // wide], item])
        place = client.repeat(2) * block.n_items + touched
        user, label = owner, torch.ones(total, dtype=torch.uint8, device=device)
    else:
        place = torch.zeros(total, dtype=torch.int64, device=device)
        user, label = torch.zeros_like(place), torch.zeros(total, dtype=torch.uint8, device=device)
        drawn_at = user_sample[owner] + which // wide * (1 + each[owner]) + 1 + which % wide
        place[drawn_at], user[drawn_at] = item, owner
        having = torch.repeat_interleave(users, train_start.diff())
        nth = torch.arange(len(train), device=device) - train_start[having]
        own_at = user_sample[having] + nth * (1 + each[having])
        place[own_at], user[own_at], label[own_at] = train, having, 1
        place += client_of_user[user] * block.n_items

    unique, inverse = torch.unique(place, return_inverse=True)
    owner_of_row = unique // max(block.n_items, 1)
    rows_start = torch.zeros(block.n_clients + 1, dtype=torch.int64, device=device)
    rows_start[1:] = torch.bincount(owner_of_row, minlength=block.n_clients).cumsum(0)
    row = (inverse - rows_start[place // max(block.n_items, 1)]).int()
    return Samples(
        start=there(sizes.start),
        user=user.int(),
        row=row[:total],
        label=label,
        negative=row[total:] if pairs else None,
        rows_start=rows_start,
        rows_ids=(unique - owner_of_row * block.n_items).int(),
    )
