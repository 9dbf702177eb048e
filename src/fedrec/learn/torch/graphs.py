"""Training models that see a whole graph (LightGCN), all clients of a block together, on compact rows.

An item outside the sample has no gradient and does not move, so a client trains the rows of its sample only; the
sample holds all of the client's own items, hence its whole graph. The clients' graphs are the blocks of one
block-diagonal graph, and they train in lockstep (:mod:`fedrec.learn.lockstep`). Convolution is linear and symmetric,
so it is its own gradient and nothing needs to be recorded.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from fedrec.backbones.lightgcn import Graph, own_graphs
from fedrec.core.block import Block
from fedrec.core.messages import Float32, Rows
from fedrec.data.ragged import Int64, offsets, segments
from fedrec.extras import installed
from fedrec.keyed import U64
from fedrec.learn.lockstep import Lockstep, chunks, largest_first
from fedrec.learn.sample_arrays import Samples
from fedrec.learn.samples import draw
from fedrec.learn.shuffle import epoch_key, order
from fedrec.learn.trained import LocalSettings, Trained, check_fit

if TYPE_CHECKING:
    from torch import Tensor

NUMBERS = 1 << 23
"""Numbers in the rows of clients that are trained together; a few such arrays exist at a time."""


def train_graphs(
    block: Block,
    users: Float32,
    table: Float32,
    settings: LocalSettings,
    negatives: int,
    layers: int,
    draw_keys: U64,
    order_keys: U64,
    device: str = "cpu",
    *,
    fused: bool = True,
) -> Trained:
    """Train every client of a block on its own graph with BPR.

    ``table`` ``[n_items, d]`` shared, or ``[clients, n_items, d]``: embeddings before convolution. The optimiser
    starts fresh. ``settings.weight_decay`` is the L2 penalty on the embeddings of a batch. The counterpart of
    :func:`fedrec.learn.train.train_block` for models that see a whole graph. Without ``fused`` torch trains on the CPU
    too: one large graph is work for all its threads, where the kernel gives a client to one.
    """
    samples = draw(block, negatives, draw_keys, settings.engine, "bpr")
    check_fit(block, samples, users, table)
    if fused and settings.engine != "torch" and device == "cpu" and installed("numba"):
        from fedrec.learn.kernel.graphs import train_fused_graphs

        return train_fused_graphs(block, samples, users, table, settings, layers, order_keys)
    changes = np.zeros((len(samples.rows_ids), users.shape[1]), np.float32)
    rows = Rows(samples.rows_start, samples.rows_ids, changes, block.n_items)
    out = Trained(np.array(users, np.float32), rows, np.zeros(block.n_clients))
    falling = largest_first(-(-np.diff(samples.start) // settings.batch_size))  # those with most steps first
    numbers = offsets(np.diff(samples.rows_start)[falling]) * users.shape[1]
    for clients in chunks(falling, lambda at: int(np.searchsorted(numbers, numbers[at] + NUMBERS, "right")) - 1 - at):
        _Chunk(block, samples, users, table, settings, layers, clients, order_keys, device).train(out)
    return out


class _Chunk:
    """Clients that train together, those with most steps first."""

    def __init__(
        self,
        block: Block,
        samples: Samples,
        users: Float32,
        table: Float32,
        settings: LocalSettings,
        layers: int,
        clients: Int64,
        keys: U64,
        device: str,
    ) -> None:
        import torch

        self.settings, self.layers, self.clients, self.device = settings, layers, clients, device
        self.where_users, self.where_rows = segments(block.user_start, clients), segments(samples.rows_start, clients)
        self.users_at = offsets(np.diff(block.user_start)[clients])
        self.rows_at = offsets(np.diff(samples.rows_start)[clients])
        self.counts = np.diff(samples.start)[clients]
        ids = samples.rows_ids[self.where_rows]
        self.before = table[ids] if table.ndim == 2 else table[np.repeat(clients, np.diff(self.rows_at)), ids]
        self.people = torch.tensor(users[self.where_users], device=device)
        self.items = torch.tensor(self.before, device=device)
        lists = block.train.take(self.where_users)
        self.normal = own_graphs(lists, self.users_at, self.rows_at, ids, block.n_items)  # [users, rows]
        own = segments(samples.start, clients)  # the chunk's samples
        shift_rows = np.repeat(self.rows_at[:-1], self.counts)
        self.user = samples.user[own] + np.repeat(self.users_at[:-1] - block.user_start[clients], self.counts)
        self.good, self.bad = samples.row[own] + shift_rows, samples.negative[own] + shift_rows
        first = offsets(self.counts)[:-1]
        visit = [
            first[c] + order(int(self.counts[c]), epoch_key(int(keys[client]), epoch))
            for c, client in enumerate(clients)
            for epoch in range(settings.epochs)
        ]
        self.visit = np.concatenate(visit)  # samples in the order of training, client after client

    def train(self, out: Trained) -> None:
        """All epochs of the chunk's clients, written into the outputs."""
        import torch

        from fedrec.learn.torch.optimisers import Dense

        settings = self.settings
        adam = settings.optimizer == "adam"
        optimisers = [Dense(value, settings.lr, adam, fused=False) for value in (self.people, self.items)]
        losses = np.zeros(len(self.clients))
        active, graph = -1, None
        for step in Lockstep(self.counts, settings.batch_size, settings.epochs):
            if active != step.active:
                active = step.active
                upto = int(self.users_at[active]), int(self.rows_at[active])
                graph = Graph.of(self.normal[: upto[0], : upto[1]], self.device)
            assert graph is not None
            length, into = step.length, offsets(step.length)
            chosen = self.visit[np.arange(into[-1]) + np.repeat(step.first - into[:-1], length)]
            weight = torch.from_numpy(np.repeat(1.0 / length, length).astype(np.float32)).to(self.device)
            each, pulls = self._gradients(graph, chosen, weight, upto)
            for optimiser, pull in zip(optimisers, pulls, strict=True):
                optimiser.step(step.number + 1, len(pull), pull)
            losses[:active] += np.add.reduceat(each, into[:-1]) * (step.epoch == settings.epochs - 1)
        out.users[self.where_users] = self.people.cpu().numpy()
        out.rows.values[self.where_rows] = self.items.cpu().numpy() - self.before
        out.loss[self.clients] = losses / self.counts

    def _gradients(
        self, graph: Graph, chosen: Int64, weight: Tensor, upto: tuple[int, int]
    ) -> tuple[Any, tuple[Tensor, Tensor]]:
        """Loss of each sample, and the gradient of each client's mean BPR loss before convolution."""
        import torch

        who, good, bad = (torch.from_numpy(part[chosen]).to(self.device) for part in (self.user, self.good, self.bad))
        people, items = self.people[: upto[0]], self.items[: upto[1]]
        smooth_u, smooth_i = graph.propagate(people, items, self.layers)
        person, gap = smooth_u[who], smooth_i[good] - smooth_i[bad]
        margin = (person * gap).sum(1)
        pull = (-torch.sigmoid(-margin) * weight)[:, None]
        towards = pull * person
        found_u = torch.zeros_like(people).index_add_(0, who, pull * gap)
        found_i = torch.zeros_like(items).index_add_(0, good, towards).index_add_(0, bad, towards, alpha=-1)
        found_u, found_i = graph.propagate(found_u, found_i, self.layers)  # symmetric: its own transpose
        if self.settings.weight_decay:
            share = self.settings.weight_decay * weight[:, None]
            found_u.index_add_(0, who, share * people[who])
            found_i.index_add_(0, good, share * items[good]).index_add_(0, bad, share * items[bad])
        each = torch.nn.functional.softplus(-margin).double().cpu().numpy()
        return each, (found_u, found_i)
