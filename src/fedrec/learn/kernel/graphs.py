"""Calling the kernel of graphs: a block and its samples in, a :class:`Trained` out."""

from __future__ import annotations

import numpy as np

from fedrec.core.block import Block
from fedrec.core.messages import Float32, Rows
from fedrec.keyed import U64
from fedrec.learn.kernel.graph_clients import train_graph_clients
from fedrec.learn.kernel.samples import as_int32, as_int64
from fedrec.learn.sample_arrays import Samples
from fedrec.learn.trained import LocalSettings, Trained
from fedrec.threads import over_pieces


def train_fused_graphs(
    block: Block, samples: Samples, users: Float32, table: Float32, settings: LocalSettings, layers: int, keys: U64
) -> Trained:
    """Train on all cores; see :func:`fedrec.learn.torch.graphs.train_graphs`."""
    users_out = np.empty(users.shape, np.float32)
    changes = np.empty((len(samples.rows_ids), users.shape[1]), np.float32)
    loss = np.zeros(block.n_clients)
    counts = np.diff(samples.start)
    arguments = (
        samples.start, samples.user, samples.row, samples.negative, samples.rows_start, samples.rows_ids,
        as_int64(block.user_start), as_int64(block.train.start), as_int32(block.train.values),
        np.ascontiguousarray(table if table.ndim == 3 else table[None], np.float32), table.ndim == 3,
        np.ascontiguousarray(users, np.float32), users_out, changes, loss, np.ascontiguousarray(keys),
        settings.epochs, settings.batch_size, layers, np.float32(settings.lr), np.float32(settings.weight_decay),
        settings.optimizer == "adam",
    )  # fmt: skip
    over_pieces(train_graph_clients, counts * settings.epochs + np.diff(samples.rows_start), arguments)
    return Trained(users_out, Rows(samples.rows_start, samples.rows_ids, changes, block.n_items), loss)
