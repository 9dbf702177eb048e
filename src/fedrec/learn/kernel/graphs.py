"""Calling the kernel of graphs."""

from __future__ import annotations

import numpy as np

from fedrec.core.block import Block
from fedrec.core.messages import Float32
from fedrec.keyed import U64
from fedrec.learn.kernel.call import on_all_cores
from fedrec.learn.kernel.graph_clients import train_graph_clients
from fedrec.learn.kernel.samples import as_int32, as_int64
from fedrec.learn.sample_arrays import Samples
from fedrec.learn.trained import LocalSettings, Trained


def train_fused_graphs(
    block: Block, samples: Samples, users: Float32, table: Float32, settings: LocalSettings, layers: int, keys: U64
) -> Trained:
    """Train on all cores; see :func:`fedrec.learn.torch.graphs.train_graphs`."""
    users, table = (np.ascontiguousarray(array, np.float32) for array in (users, table))
    own = (
        as_int64(block.train.start), as_int32(block.train.values), layers,
        np.float32(settings.lr), np.float32(settings.weight_decay), settings.optimizer == "adam",
    )  # fmt: skip
    return on_all_cores(
        train_graph_clients, block, samples, users, table, keys, settings.epochs, settings.batch_size, own
    )
