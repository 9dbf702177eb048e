"""Calling the fused kernel: arrays of the right kind in, a :class:`Trained` out."""

from __future__ import annotations

import numpy as np

from fedrec.core.messages import Array, Float32, Rows
from fedrec.errors import BadInput
from fedrec.learn.adam import schedule
from fedrec.learn.kernel.clients import train_clients
from fedrec.learn.trained import Trained, Work
from fedrec.threads import over_pieces


def train_fused(work: Work) -> Trained:
    """Train on all cores; see :func:`fedrec.learn.train.train_block`."""
    block, samples, settings = work.block, work.samples.on_host(), work.settings
    users, table, networks = work.users, work.table, work.networks
    affine = work.backbone.kernel == "affine"
    if affine and ("bias" not in networks or networks["bias"].shape != (block.n_users,)):
        raise BadInput("the affine scorer needs networks['bias'] with one number per user")
    if len(networks) > affine:
        raise BadInput(f"backbone {work.backbone.name} has no network parameters {sorted(networks)}")
    adam, pairs = settings.optimizer == "adam", samples.pairs
    counts = np.diff(samples.start)
    most = int(counts.max(initial=0))
    batch_size = min(settings.batch_size, max(1, most))  # a thread's scratch has the size of a batch
    steps = settings.epochs * (-(-most // batch_size))
    plan = schedule(steps).stacked() if adam else np.zeros((8, 1))

    bias = np.ascontiguousarray(networks["bias"], np.float32) if affine else np.zeros(0, np.float32)
    users_out = np.empty(users.shape, np.float32)
    bias_out = np.empty_like(bias)
    changes = np.empty((len(samples.rows_ids), users.shape[1]), np.float32)
    loss = np.zeros(block.n_clients)
    tables = rows_in_one_run(table if table.ndim == 3 else table[None])
    arguments = (
        samples.start, samples.user, samples.row,
        samples.negative if pairs else np.zeros(0, np.int32), samples.label,
        samples.rows_start, samples.rows_ids, np.ascontiguousarray(block.user_start),
        tables, table.ndim == 3, rows_in_one_run(users), users_out, bias, bias_out, changes, loss,
        np.ascontiguousarray(work.keys), settings.epochs, batch_size,
        np.float32(work.lr_users), np.float32(work.lr_items), adam, affine, pairs, np.float32(work.proximal), plan,
    )  # fmt: skip
    # a client that holds many rows costs something even where it has few samples
    over_pieces(train_clients, counts * settings.epochs + np.diff(samples.rows_start), arguments, work.threads)
    return Trained(
        users=users_out,
        rows=Rows(samples.rows_start, samples.rows_ids, changes, block.n_items),
        loss=loss,
        networks={"bias": bias_out - bias} if affine else {},
    )


def rows_in_one_run(array: Array) -> Float32:
    """As float32, with the numbers of a row side by side, which the kernel reads several at a time."""
    array = np.asarray(array, np.float32)
    return array if array.strides[-1] == array.itemsize else np.ascontiguousarray(array)
