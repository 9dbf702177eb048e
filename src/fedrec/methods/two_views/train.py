"""Training clients that hold a shared and a private item table.

Item ``j`` of a client has two views: ``c_j``, a row of the client's copy C of the downloaded table, and ``v_j``, a row
of its private table V. Losses reach every row of both tables, so gradients are dense. Two engines make the same steps
of plain gradient descent:

* :mod:`fedrec.methods.two_views.autograd`: torch's own gradients of the objective in the paper's file;
* :mod:`fedrec.methods.two_views.closed`: its fast twin. Whole-table products are ``m d^2`` and there are five of them,
  whatever the losses; everything else costs ``m d`` or ``d^2`` or one mini-batch. It trains tables where they lie.

Clients of a chunk train in lockstep (:mod:`fedrec.learn.lockstep`); on the CPU each thread takes chunks of its own.
"""

from __future__ import annotations

import threading
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from fedrec.backbones.base import Backbone
from fedrec.core.block import Block
from fedrec.core.messages import Array, Float32
from fedrec.data.ragged import Int64, offsets, segments
from fedrec.errors import BadInput
from fedrec.extras import installed
from fedrec.keyed import U64
from fedrec.learn.lockstep import Lockstep, chunks, largest_first
from fedrec.learn.sample_arrays import Samples
from fedrec.learn.torch.workers import over_chunks
from fedrec.methods.two_views.autograd import Patience, autograd_step
from fedrec.methods.two_views.batches import Ordered, positives
from fedrec.methods.two_views.closed import closed_step
from fedrec.methods.two_views.own_generators import OwnGenerators
from fedrec.methods.two_views.rooms import Scratch, own_tables, put, room
from fedrec.methods.two_views.step import Objective, Positives, State

if TYPE_CHECKING:
    from fedrec.methods.two_views.step import Loss

CPU_NUMBERS = 1 << 20
"""Numbers in one table of a chunk for torch's own gradients: enough that calls cost little beside their arithmetic."""
DEVICE_NUMBERS = 1 << 28
"""The same on another device, where only its memory limits."""
CLOSED_CLIENTS = 32
"""Clients of a chunk that the closed form trains: enough to share one reading of the generator's layers."""


@dataclass(frozen=True)
class TwoViewsTrained:
    """What a block's local training gives; private tables were written in place."""

    users: Float32  # [users, d]
    shared: Float32  # [clients, m, d] changes of the shared table
    loss: NDArray[np.float64]  # [clients] mean recommendation loss of the last local epoch
    networks: dict[str, Array]  # changes [clients, ...] ([users] for the bias)


@dataclass(frozen=True)
class _Job:
    """What all chunks of one call share: inputs to read, outputs to fill."""

    block: Block
    samples: Samples
    users: Float32
    shared: Float32
    private: Float32
    networks: dict[str, Array]
    backbone: Backbone
    phases: tuple[Objective, ...]
    keys: U64
    device: str
    loss: Loss | None
    """The plain objective; None: the closed form makes the steps."""
    local: threading.local
    out: TwoViewsTrained


def closed_form_fits(objective: Objective, backbone: Backbone) -> bool:
    """Whether gradients are written out for this variant."""
    return (
        backbone.kernel is not None
        and objective.optimizer == "sgd"
        and not (objective.weight_decay or objective.tolerance)
        and objective.transfer != "unified"
        and (not objective.beta_a or objective.consistency == "ranking")
        and (not objective.beta_o or objective.complementarity == "orthogonal")
    )


def train_two_views(
    block: Block,
    samples: Samples,
    users: Float32,
    shared: Float32,
    private: Float32,
    networks: dict[str, Array],
    backbone: Backbone,
    phases: tuple[Objective, ...],
    loss: Loss,
    keys: U64,
    *,
    engine: str = "auto",
    device: str = "cpu",
    threads: int | None = None,
) -> TwoViewsTrained:
    """Train every client of a block.

    ``shared`` ``[m, d]`` is what all downloaded; ``private`` ``[clients, m, d]`` is written in place.
    ``networks``: ``bias`` ``[users]`` for the affine scorer, layers of the backbone and of the transfer
    generator once for all clients. ``phases`` follow one another on the same samples; ``loss`` is the paper's plain
    objective; ``keys`` ``[clients]`` order the mini-batches. ``engine``: ``torch`` for torch's own gradients of
    ``loss``; ``auto`` for those written out where they are, on the CPU with numba (elsewhere they are not worth twice
    torch's own).
    """
    if private.shape != (block.n_clients, *shared.shape):
        raise BadInput(f"private tables have shape {private.shape}; give {(block.n_clients, *shared.shape)}")
    if samples.pairs:
        raise BadInput("training two views takes pointwise samples; use objective=bce")
    host = samples.on_host()
    closed = (
        engine != "torch"
        and device == "cpu"
        and installed("numba")
        and all(closed_form_fits(phase, backbone) for phase in phases)
    )
    out = TwoViewsTrained(
        users=np.array(users, np.float32),
        shared=room((block.n_clients, *shared.shape), device),
        loss=np.zeros(block.n_clients),
        networks={
            name: room(array.shape if name == "bias" else (block.n_clients, *array.shape), device)
            for name, array in networks.items()
        },
    )
    job = _Job(
        block, host, users, shared, private, networks, backbone, phases, keys, device,
        loss=None if closed else loss,
        local=threading.local(),
        out=out,
    )  # fmt: skip
    counts = np.diff(host.start)
    idle = np.flatnonzero(counts == 0)  # what trained is overwritten, so only these are cleared
    out.shared[idle] = 0
    for name, change in out.networks.items():
        change[segments(block.user_start, idle) if name == "bias" else idle] = 0
    limit = (CPU_NUMBERS if device == "cpu" else DEVICE_NUMBERS) // max(1, shared.size)
    limit = CLOSED_CLIENTS if closed else limit
    over_chunks(partial(_train_chunk, job), list(chunks(largest_first(counts), lambda at: limit)), device, threads)
    return out


def _train_chunk(job: _Job, clients: Int64) -> None:
    """All epochs of some clients (largest first), written into the job's outputs."""
    block, device, out = job.block, job.device, job.out
    users = segments(block.user_start, clients)
    users_at = offsets(np.diff(block.user_start)[clients])

    def there(array: Array) -> Tensor:
        return torch.from_numpy(np.ascontiguousarray(array)).to(device)

    scratch: Scratch | None = getattr(job.local, "scratch", None)
    if scratch is None:
        scratch = job.local.scratch = Scratch(device)

    def copies(name: str, array: Array) -> Tensor:
        return scratch.take(name, len(clients), *array.shape).copy_(there(array))

    closed = job.loss is None
    generates = closed and job.phases[0].transfer == "ace"
    if closed:  # in the rooms of the results
        for client in clients:
            out.shared[client] = job.shared
    state = State(
        shared=torch.from_numpy(out.shared) if closed else copies("C", job.shared),
        private=torch.from_numpy(np.asarray(job.private)) if closed else own_tables(job.private, clients, scratch),
        place=clients if closed else np.arange(len(clients)),
        users=there(job.users[users].astype(np.float32)).clone(),
        users_at=users_at,
        networks={
            name: there(array[users]).clone() if name == "bias" else copies(name, array)
            for name, array in job.networks.items()
            if not (generates and name.startswith("transfer_"))
        },
        client_of_user=there(np.repeat(np.arange(len(clients)), np.diff(users_at))),
        scratch=scratch,
        generator=OwnGenerators(job.networks, len(clients)) if generates else None,
    )
    own = positives(block, clients, state.place, device)
    counts = np.diff(job.samples.start)[clients]
    for phase in job.phases:
        ordered = Ordered.of(
            job.samples, block.n_items, clients, state.place, users, users_at, job.keys, phase.epochs, device
        )
        state.optimisers.clear()
        losses = _run_phase(job, phase, state, own, ordered, counts)

    if closed:
        for client in clients:
            out.shared[client] -= job.shared
    else:
        put(out.shared, clients, state.shared.sub_(there(job.shared)))
        put(job.private, clients, state.private)
    if state.generator is not None:
        state.generator.put_changes(out.networks, clients)
    out.users[users] = state.users.cpu().numpy()
    out.loss[clients] = losses.double().cpu().numpy() / counts
    for name, value in state.networks.items():
        if name == "bias":
            out.networks[name][users] = value.cpu().numpy() - job.networks[name][users]
        else:
            put(out.networks[name], clients, value.sub_(there(job.networks[name])))


def _run_phase(job: _Job, phase: Objective, state: State, own: Positives, ordered: Ordered, counts: Int64) -> Tensor:
    """All steps of one phase; returns the summed losses of each client's last epoch ``[clients]``."""
    losses = torch.zeros(len(counts), device=job.device)
    patience = Patience(phase.tolerance, counts, job.device) if phase.tolerance else None
    for step in Lockstep(counts, phase.batch_size, phase.epochs):
        now = step.on(job.device)
        batch, paced = ordered.batch(now, phase.reduction), phase.at_step(step.number)
        if job.loss is None:
            each = closed_step(state, batch, own, paced, job.backbone)  # [active, width]
        else:
            working = None if patience is None else patience.working
            each = autograd_step(state, batch, own, paced, job.backbone, job.loss, step.number + 1, working)
        found = (each * batch.inside).sum(1)
        losses[: step.active] += found * (now.epoch == phase.epochs - 1)
        if patience is not None:
            patience.after(now, found)
    return losses
