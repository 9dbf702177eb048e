"""The batched torch engine: any backbone, any device, no numba.

Clients of a chunk train in lockstep (:mod:`fedrec.learn.lockstep`). A step handles one mini-batch of each:
``[clients, batch]`` samples, padded; gradients come from autograd through the backbone's score.
On the CPU each thread takes chunks that fit its cache and runs torch on one core, because a barrier for
every small operation costs more than it gains; on another device one chunk holds as many clients as fit.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor
from torch.nn import functional

from fedrec.core.messages import Float32, Rows
from fedrec.data.ragged import Int64, offsets, segments
from fedrec.learn.adam import DENSE_BELOW
from fedrec.learn.lockstep import Lockstep, chunks, largest_first
from fedrec.learn.torch.optimisers import AdamRows, Dense, DenseRows, RowOptimiser, SgdRows
from fedrec.learn.torch.random import from_words, orders
from fedrec.learn.torch.workers import over_chunks
from fedrec.learn.trained import Trained, Work, shared_networks, stacked, unmoved

CPU_NUMBERS = 1 << 18
"""Numbers in one step's item vectors on the CPU: a few such arrays fit a core's cache."""
DEVICE_NUMBERS = 1 << 27
"""The same on another device, where only its memory limits."""


@dataclass(frozen=True)
class _Job(Work):
    """What all chunks of one call share: inputs to read, outputs to fill."""

    counts: Int64
    rows_start: Int64
    shared: frozenset[str]  # networks that came once for all clients
    users_out: Float32
    there: Tensor | None  # a shared table, on the device
    rows_first: Tensor  # rows_start and rows_ids, on the device
    rows_items: Tensor
    changes: Tensor  # [rows, d] on the device
    networks_out: dict[str, Float32]
    loss: NDArray[np.float64]


def train_batched(work: Work) -> Trained:
    """Train with torch; see :func:`fedrec.learn.train.train_block`."""
    block, samples, table, device = work.block, work.samples, work.table, work.device
    dim = work.users.shape[1]
    shared = shared_networks(work.backbone, work.networks, block, dim)
    start, rows_start, rows_ids = _host(samples.start), _host(samples.rows_start), _host(samples.rows_ids)
    counts = np.diff(start)
    job = _Job(
        **vars(work),
        counts=counts,
        rows_start=rows_start,
        shared=shared,
        users_out=np.array(work.users, np.float32),
        there=torch.from_numpy(np.array(table, np.float32)).to(device) if table.ndim == 2 else None,
        rows_first=torch.as_tensor(samples.rows_start).to(device),
        rows_items=torch.as_tensor(samples.rows_ids).to(device),
        changes=torch.zeros((len(rows_ids), dim), device=device),
        networks_out=unmoved(work.networks, shared, block.n_clients),
        loss=np.zeros(block.n_clients),
    )
    limit = (CPU_NUMBERS if device == "cpu" else DEVICE_NUMBERS) // max(1, dim)  # samples of a step
    falling = largest_first(counts)
    together = chunks(falling, lambda at: limit // min(work.settings.batch_size, int(counts[falling[at]])))
    over_chunks(partial(_train_chunk, job), list(together), device, work.threads)
    return Trained(
        users=job.users_out,
        rows=Rows(rows_start, rows_ids, _returned(job.changes), block.n_items),
        loss=job.loss,
        networks=job.networks_out,
    )


def _returned(tensor: Tensor) -> Float32:
    """A large result as a numpy array, through page-locked memory where it comes from another device."""
    if tensor.device.type == "cuda":
        return torch.empty(tensor.shape, dtype=tensor.dtype, pin_memory=True).copy_(tensor).numpy()
    return tensor.cpu().numpy()


def _host(array: object) -> NDArray[Any]:
    return array.cpu().numpy() if isinstance(array, Tensor) else np.asarray(array)


def _train_chunk(job: _Job, clients: Int64) -> None:
    """All epochs of some clients (largest first), written into the job's outputs."""
    block, settings, device = job.block, job.settings, job.device
    counts, epochs = job.counts[clients], settings.epochs
    lockstep = Lockstep(counts, settings.batch_size, epochs)
    users = segments(block.user_start, clients)
    users_at = offsets(np.diff(block.user_start)[clients])
    single = bool((np.diff(users_at) == 1).all())
    rows_at = offsets(np.diff(job.rows_start)[clients])
    adam = settings.optimizer == "adam"

    ordered = _Ordered(job, clients, counts, users_at, rows_at, single)
    start, where = _rows_start(job, clients)
    items = _rows(job, clients, start, adam, len(lockstep))
    people = Dense(torch.from_numpy(job.users[users].astype(np.float32)).to(device), job.lr_users, adam)
    networks = {name: _network(job, name, clients, users, adam) for name in job.networks}
    losses = torch.zeros(len(clients), device=device)
    per_user = job.backbone.per_user

    for host in lockstep:
        step = host.on(device)
        k, active, width = step.number, step.active, step.width
        upto = int(users_at[active])
        inside, index = step.grid(ordered.total)  # [active, width]
        index = index.reshape(-1)
        weight = inside / step.length[:, None]

        rows = ordered.rows(index)
        vectors = items.read(rows, k + 1).requires_grad_()
        own = people.value[:upto].detach().requires_grad_()
        leaves = {
            name: layer.value[: upto if name in per_user else active].detach().requires_grad_()
            for name, layer in networks.items()
        }
        shape = (active, width, vectors.shape[-1])
        if single:
            person = own.unsqueeze(1)
            inputs = {name: leaf[:, None] if name in per_user else leaf for name, leaf in leaves.items()}
        else:
            who = ordered.user.index_select(0, index)
            person = own.index_select(0, who).view(shape)
            inputs = {
                name: leaf.index_select(0, who).view(shape[:2]) if name in per_user else leaf
                for name, leaf in leaves.items()
            }
        if ordered.negative is None:
            logit = job.backbone.score(person, vectors.view(shape), inputs)
            label = ordered.label.index_select(0, index).view(shape[:2])
            each = functional.binary_cross_entropy_with_logits(logit, label, reduction="none")
        else:
            positive, negative = vectors.view(2, *shape).unbind(0)
            logit = job.backbone.score(person, positive, inputs) - job.backbone.score(person, negative, inputs)
            each = functional.softplus(-logit)
        gradients = torch.autograd.grad((each * weight).sum(), [vectors, own, *leaves.values()], allow_unused=True)
        with torch.no_grad():
            # rows first: their state was read before the step
            items.write(rows, k + 1, gradients[0], int(rows_at[active]))
            people.step(k + 1, upto, gradients[1])
            for (name, layer), gradient in zip(networks.items(), gradients[2:], strict=True):
                if gradient is not None:
                    layer.step(k + 1, upto if name in per_user else active, gradient)
            if host.epoch.max() == epochs - 1:
                losses[:active] += (each.detach() * inside).sum(1) * (step.epoch == epochs - 1)

    row_steps = torch.from_numpy(np.repeat(lockstep.steps, np.diff(rows_at))).to(device)
    job.changes.index_copy_(0, where, items.finish(row_steps) - start)
    job.users_out[users] = people.value.cpu().numpy()
    job.loss[clients] = losses.double().cpu().numpy() / counts
    for name, layer in networks.items():
        at = users if name in per_user else clients
        before = job.networks[name] if name in job.shared else job.networks[name][at]
        job.networks_out[name][at] = layer.value.cpu().numpy() - before


def _rows_start(job: _Job, clients: Int64) -> tuple[Tensor, Tensor]:
    """Downloaded values ``[rows, d]`` of the clients' compact rows, and where these rows lie in the block."""
    chosen = torch.from_numpy(clients).to(job.device)
    counts = job.rows_first.diff()[chosen]
    total = int(np.diff(job.rows_start)[clients].sum())
    first = job.rows_first[chosen] - (counts.cumsum(0) - counts)
    where = torch.arange(total, device=job.device) + torch.repeat_interleave(first, counts, output_size=total)
    ids = job.rows_items.index_select(0, where)
    if job.there is not None:
        return job.there.index_select(0, ids), where
    owner = np.repeat(clients, np.diff(job.rows_start)[clients])
    values = np.ascontiguousarray(job.table[owner, ids.cpu().numpy()], np.float32)
    return torch.from_numpy(values).to(job.device), where


def _rows(job: _Job, clients: Int64, start: Tensor, adam: bool, steps: int) -> RowOptimiser:
    value = torch.cat([start, start.new_zeros(1, start.shape[1])])  # the last row is padding
    visits = float(np.minimum(job.settings.batch_size, job.counts[clients]).sum())
    if job.proximal > 0 or (adam and len(start) < DENSE_BELOW * visits):
        return DenseRows(value, job.lr_items, adam, job.proximal)
    return AdamRows(value, job.lr_items, steps) if adam else SgdRows(value, job.lr_items)


def _network(job: _Job, name: str, clients: Int64, users: Int64, adam: bool) -> Dense:
    per_user = name in job.backbone.per_user
    own = stacked(job.networks[name], name in job.shared, users if per_user else clients)
    value = torch.from_numpy(own).to(job.device)
    rate = job.lr_users if per_user else job.settings.lr
    return Dense(value, rate, adam, 0.0 if per_user else job.settings.weight_decay)


class _Ordered:
    """A chunk's samples in the order of training, all epochs; entry ``total`` is padding."""

    def __init__(self, job: _Job, clients: Int64, counts: Int64, users_at: Int64, rows_at: Int64, single: bool) -> None:
        device, epochs, samples = job.device, job.settings.epochs, job.samples
        self.total = total = int(counts.sum()) * epochs
        local = orders(counts, from_words(job.keys[clients], device), epochs)
        repeats = torch.from_numpy(counts * epochs).to(device)

        def spread(per_client: Int64) -> Tensor:
            return torch.repeat_interleave(torch.from_numpy(per_client).to(device), repeats, output_size=total)

        sample = local + spread(_host(samples.start)[clients])

        def taken(array: object, shift: Int64 | None, padding: int) -> Tensor:
            values = torch.as_tensor(array).to(device).index_select(0, sample)
            values = values.long() + spread(shift) if shift is not None else values.float()
            return torch.cat([values, values.new_full((1,), padding)])

        last = int(rows_at[-1])
        self.row = taken(samples.row, rows_at[:-1], last)
        self.negative = taken(samples.negative, rows_at[:-1], last) if samples.pairs else None
        self.label = taken(samples.label, None, 0)
        self.user = sample if single else taken(samples.user, users_at[:-1] - job.block.user_start[clients], 0)

    def rows(self, index: Tensor) -> Tensor:
        """Rows of these samples; for pairs the positives', then the negatives'."""
        row = self.row.index_select(0, index)
        return row if self.negative is None else torch.cat([row, self.negative.index_select(0, index)])
