"""Training models that see a whole graph (LightGCN), client by client, on compact rows.

An item outside the sample has no gradient and does not move, so a client trains the rows of its sample only;
the sample holds all of the client's own items, hence its whole graph.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from fedrec.backbones.lightgcn import Graph
from fedrec.core.block import Block
from fedrec.core.messages import Float32, Rows
from fedrec.keyed import U64
from fedrec.learn.samples import Samples, draw
from fedrec.learn.shuffle import epoch_key, order
from fedrec.learn.train import LocalSettings, Trained
from fedrec.maths.interaction_matrix import matrix, normalised


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
) -> Trained:
    """Train every client of a block on its own graph with BPR.

    ``table`` ``[n_items, d]`` shared, or ``[clients, n_items, d]``: embeddings before convolution. The optimiser
    starts fresh. The counterpart of :func:`fedrec.learn.train.train_block` for models that see a whole graph.
    """
    samples = draw(block, negatives, draw_keys, settings.engine, "bpr")
    users_out = users.copy()
    changes = np.zeros((len(samples.rows_ids), users.shape[1]), np.float32)
    loss = np.zeros(block.n_clients)
    for client in range(block.n_clients):
        own_rows = slice(int(samples.rows_start[client]), int(samples.rows_start[client + 1]))
        if own_rows.start == own_rows.stop:
            continue
        own_users = slice(int(block.user_start[client]), int(block.user_start[client + 1]))
        ids = samples.rows_ids[own_rows]
        before = (table if table.ndim == 2 else table[client])[ids]
        lists = block.train.take(np.arange(own_users.start, own_users.stop))
        graph = normalised(matrix(lists, block.n_items))[:, ids]  # the sample holds all of the client's items
        moved = _train_one(
            graph, users[own_users], before, _samples_of(samples, client, own_users.start), settings, layers,
            int(order_keys[client]), device,
        )  # fmt: skip
        users_out[own_users], after, loss[client] = moved
        changes[own_rows] = after - before
    rows = Rows(samples.rows_start, samples.rows_ids, changes, block.n_items)
    return Trained(users_out, rows, loss)


Triples = tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.int64]]


def _samples_of(samples: Samples, client: int, first_user: int) -> Triples:
    """A client's (user, positive, negative) in its own numbering."""
    own = slice(int(samples.start[client]), int(samples.start[client + 1]))
    user = samples.user[own].astype(np.int64) - first_user
    return user, samples.row[own].astype(np.int64), samples.negative[own].astype(np.int64)


def _train_one(
    graph: Any, users: Float32, rows: Float32, triples: Triples, settings: LocalSettings, layers: int, key: int, device: str
) -> tuple[Float32, Float32, float]:
    """Users, rows and the mean loss of the last epoch after training on one graph."""
    import torch
    from torch.nn.functional import softplus

    linked = Graph.of(graph.tocsr(), device)
    people = torch.tensor(users, device=device, requires_grad=True)
    items = torch.tensor(rows, device=device, requires_grad=True)
    kind = torch.optim.Adam if settings.optimizer == "adam" else torch.optim.SGD
    optimiser = kind([people, items], lr=settings.lr)
    count, last = len(triples[0]), 0.0
    for epoch in range(settings.epochs):
        shuffled = order(count, epoch_key(key, epoch))
        last = 0.0
        for first in range(0, count, settings.batch_size):
            batch = shuffled[first : first + settings.batch_size]
            who, good, bad = (torch.from_numpy(part[batch]).to(device) for part in triples)
            smooth_u, smooth_i = linked.propagate(people, items, layers)
            chosen = smooth_u[who]
            margin = (chosen * (smooth_i[good] - smooth_i[bad])).sum(1)
            each = softplus(-margin)
            optimiser.zero_grad()
            objective = each.mean()
            if settings.weight_decay:
                sizes = people[who].square().sum() + items[good].square().sum() + items[bad].square().sum()
                objective = objective + 0.5 * settings.weight_decay * sizes / len(batch)
            objective.backward()
            optimiser.step()
            last += float(each.detach().sum())
    return people.detach().cpu().numpy(), items.detach().cpu().numpy(), last / max(1, count)
