"""A chunk's samples in the order of training, cut into mini-batches, and its clients' interacted items."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor

from fedrec.core.block import Block
from fedrec.core.messages import Array
from fedrec.data.ragged import Int64, segments
from fedrec.keyed import U64
from fedrec.learn.lockstep import Step
from fedrec.learn.sample_arrays import Samples
from fedrec.learn.torch.random import from_words, orders
from fedrec.methods.two_views.step import Batch, Positives


def positives(block: Block, clients: Int64, place: Int64, device: str) -> Positives:
    """Interacted items of some clients, as rows of stacked tables, of which ``place`` ``[clients]`` are theirs."""
    start = block.train.start[block.user_start]
    counts = np.diff(start)[clients]
    most = max(1, int(counts.max(initial=0)))
    flat = np.zeros((len(clients), most), np.int64)
    inside = np.arange(most) < counts[:, None]
    flat[inside] = block.train.values[segments(start, clients)]
    flat += place[:, None] * block.n_items
    weight = inside / np.maximum(counts, 1)[:, None]
    return Positives(torch.from_numpy(flat).to(device), torch.from_numpy(weight.astype(np.float32)).to(device))


@dataclass(frozen=True)
class Ordered:
    """Samples in the order of training, client after client, all epochs; the last entry is padding."""

    items: Tensor  # int64 [samples + 1]
    owner: Tensor  # int64 [samples + 1] user within the chunk
    label: Tensor  # [samples + 1]
    users_at: Int64  # [clients + 1] where each client's users begin
    first_row: Tensor  # int64 [clients] where each client's table begins among the stacked rows

    @staticmethod
    def of(
        samples: Samples,
        n_items: int,
        clients: Int64,
        place: Int64,
        users: Int64,
        users_at: Int64,
        keys: U64,
        epochs: int,
        device: str,
    ) -> Ordered:
        """``users`` are the chunk's users in the block; ``keys`` ``[clients of the block]`` say the order.

        ``place`` ``[clients]`` says which of the stacked tables are theirs.
        """
        counts = np.diff(samples.start)[clients]
        local = orders(counts, from_words(keys[clients], device), epochs).cpu().numpy()
        sample = local + np.repeat(samples.start[clients], counts * epochs)
        row = samples.row[sample] + np.repeat(samples.rows_start[clients], counts * epochs)
        position = np.zeros(int(users.max(initial=-1)) + 1, np.int64)
        position[users] = np.arange(len(users))

        def padded(values: Array) -> Tensor:
            return torch.from_numpy(np.append(values, values.dtype.type(0))).to(device)

        return Ordered(
            padded(samples.rows_ids[row].astype(np.int64)),
            padded(position[samples.user[sample]]),
            padded(samples.label[sample].astype(np.float32)),
            users_at,
            torch.from_numpy(place * n_items).to(device),
        )

    def batch(self, step: Step, reduction: str) -> Batch:
        """The mini-batch of each active client; ``step`` holds tensors."""
        device = self.items.device
        shape = (step.active, step.width)
        inside, index = step.grid(len(self.items) - 1)
        where = index.reshape(-1)
        rows = self.items.index_select(0, where).view(shape)
        first = torch.from_numpy(self.users_at[: step.active]).to(device)[:, None]
        return Batch(
            active=step.active,
            users=int(self.users_at[step.active]),
            rows=rows,
            flat=(rows + self.first_row[: step.active, None]).view(-1),
            owner=torch.where(inside, self.owner.index_select(0, where).view(shape), first),
            label=self.label.index_select(0, where).view(shape),
            weight=inside / step.length[:, None] if reduction == "mean" else inside.float(),
            inside=inside,
        )
