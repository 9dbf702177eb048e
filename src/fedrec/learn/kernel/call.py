"""Calling a kernel that trains clients: a block and its samples in, a :class:`Trained` out."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from fedrec.core.block import Block
from fedrec.core.messages import Array, Float32, Rows
from fedrec.keyed import U64
from fedrec.learn.adam import schedule
from fedrec.learn.kernel.samples import as_int64
from fedrec.learn.sample_arrays import Samples
from fedrec.learn.trained import LocalSettings, Trained
from fedrec.threads import over_pieces


def on_all_cores(
    kernel: Callable[..., None],
    block: Block,
    samples: Samples,
    users: Float32,
    table: Float32,
    keys: U64,
    epochs: int,
    batch_size: int,
    more: tuple[Any, ...],
    threads: int | None = None,
) -> Trained:
    """Call ``kernel`` for every client with what all kernels take, and ``more``, the kernel's own arguments."""
    users_out = np.empty(users.shape, np.float32)
    changes = np.empty((len(samples.rows_ids), users.shape[1]), np.float32)
    loss = np.zeros(block.n_clients)
    arguments = (
        samples.start, samples.user, samples.row,
        np.zeros(0, np.int32) if samples.negative is None else samples.negative, samples.label,
        samples.rows_start, samples.rows_ids, as_int64(block.user_start),
        rows_in_one_run(table if table.ndim == 3 else table[None]), table.ndim == 3,
        rows_in_one_run(users), users_out, changes, loss, np.ascontiguousarray(keys), epochs, batch_size, *more,
    )  # fmt: skip
    # a client that holds many rows costs something even where it has few samples
    over_pieces(kernel, np.diff(samples.start) * epochs + np.diff(samples.rows_start), arguments, threads)
    return Trained(users_out, Rows(samples.rows_start, samples.rows_ids, changes, block.n_items), loss)


def batches(samples: Samples, settings: LocalSettings) -> tuple[int, Array]:
    """The size of a batch, no larger than any client's samples, and Adam's schedule for as many steps as any makes."""
    most = int(np.diff(samples.start).max(initial=0))
    size = min(settings.batch_size, max(1, most))  # a thread's scratch has the size of a batch
    steps = settings.epochs * (-(-most // size))
    return size, schedule(steps).stacked() if settings.optimizer == "adam" else np.zeros((8, 1))


def rows_in_one_run(array: Array) -> Float32:
    """As float32, with the numbers of a row side by side, which kernels read several at a time."""
    array = np.asarray(array, np.float32)
    return array if array.strides[-1] == array.itemsize else np.ascontiguousarray(array)
