"""Training clients that hold a shared and a private item table.

Item ``j`` of a client has two views: ``c_j``, a row of the client's copy C of the downloaded table, and
``v_j``, a row of its private table V. The item's vector is ``f_j = W c_j + v_j`` with a transfer matrix W
(the identity, a matrix of its own, or one made by a small network from two prototypes). Losses reach every
row of both tables, so gradients are dense. Two engines do the same steps of plain gradient descent:

* :mod:`fedrec.learn.two_tables_closed`: gradients by hand. Whole-table products are ``m d^2`` and there are
  five of them, whatever the losses; everything else costs ``m d`` or ``d^2`` or one mini-batch.
* :mod:`fedrec.learn.two_tables_autograd`: torch's own gradients of the plain formulas, for every variant;
  the reference that the other is tested against.

Clients are taken in chunks, those with most samples first; all clients of a chunk make their k-th step
together, and those still at work are a prefix. On the CPU each thread takes chunks of its own.
"""

from __future__ import annotations

import threading
from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import partial
from typing import Literal

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from fedrec.backbones.base import Backbone
from fedrec.core.block import Block
from fedrec.core.messages import Array, Float32
from fedrec.data.ragged import Int64, consecutive, offsets, segments
from fedrec.errors import BadInput
from fedrec.keyed import U64
from fedrec.learn.random_torch import from_words, orders
from fedrec.learn.sample_arrays import Samples
from fedrec.learn.samples import has_numba
from fedrec.learn.torch_workers import over_chunks
from fedrec.learn.two_tables_scratch import Scratch

CPU_NUMBERS = 1 << 20
"""Numbers in one table of a chunk on the CPU: enough clients that calls cost little beside their arithmetic."""
DEVICE_NUMBERS = 1 << 30
"""The same on another device, where only its memory limits."""

Transfer = Literal["none", "consensus", "unified", "ace"]
Consistency = Literal["ranking", "ranking-printed", "similarity", "contrast"]
Complementarity = Literal["orthogonal", "l2", "mutual-information"]


@dataclass(frozen=True)
class Objective:
    """What a client minimises, and how fast; rates are those of this round."""

    transfer: Transfer = "none"
    """W: identity, a matrix of its own, the same for both views, or made from prototypes (Eq. 9)."""
    length_scale: float = 10.0
    """alpha: cosines are multiplied by it before the softmax of Eq. 15."""
    norm_floor: float = 0.1
    """Length below which a vector counts as this long in cosines."""
    beta_a: float = 0.0
    """Weight of consistency (Eq. 19)."""
    beta_o: float = 0.0
    """Weight of complementarity (Eq. 19)."""
    consistency: Consistency = "ranking"
    complementarity: Complementarity = "orthogonal"
    lambda_: float = 0.0
    """FedRAP: weight of the mean squared difference of the two tables, which is to grow."""
    mu: float = 0.0
    """FedRAP: weight of the mean absolute value of the shared table."""
    reduction: Literal["sum", "mean"] = "sum"
    """How the samples of a mini-batch add up."""
    lr: float = 0.1
    """Rate of user vectors and score functions."""
    lr_items: float = 0.1
    """Rate of the shared item table."""
    private_rate: float = 1.0
    """Rate of the private table as a multiple of ``lr_items``."""
    lr_transfer: float = 0.1
    """Rate of what makes W."""
    epochs: int = 1
    batch_size: int = 2048


@dataclass(frozen=True)
class TwoTablesTrained:
    """What a block's local training gives; private tables were written in place."""

    users: Float32  # [users, d]
    shared: Float32  # [clients, m, d] changes of the shared table
    loss: NDArray[np.float64]  # [clients] mean recommendation loss of the last local epoch
    networks: dict[str, Array]  # changes [clients, ...] ([users] for the bias)


@dataclass
class State:
    """A chunk's parameters on the device; a step changes them in place. Active clients are a prefix."""

    shared: Tensor  # [clients, m, d]
    private: Tensor  # [clients, m, d]
    users: Tensor  # [users, d]
    networks: dict[str, Tensor]  # [clients, ...], the bias [users]
    client_of_user: Tensor  # int64 [users]
    scratch: Scratch
    in_place: bool = False
    """Whether rows are worked on where they lie (numba, on the CPU)."""


@dataclass(frozen=True)
class Batch:
    """One mini-batch of each active client, padded; padding has weight 0, row 0 and the client's first user."""

    active: int
    users: int
    """Users of the active clients."""
    rows: Tensor  # int64 [active, width] item
    flat: Tensor  # int64 [active * width] row in the stacked tables
    owner: Tensor  # int64 [active, width] user
    label: Tensor  # [active, width]
    weight: Tensor  # [active, width]
    inside: Tensor  # bool [active, width]


@dataclass(frozen=True)
class Positives:
    """Interacted items of each client, for prototypes (Eq. 10), padded with weight 0."""

    flat: Tensor  # int64 [clients, most] row in the stacked tables
    weight: Tensor  # [clients, most] 1 / count

    def mean(self, table: Tensor, active: int) -> Tensor:
        """Prototypes ``[active, 1, d]`` of a stacked table ``[clients, m, d]``."""
        flat = self.flat[:active]
        rows = table.view(-1, table.shape[-1]).index_select(0, flat.reshape(-1)).view(*flat.shape, -1)
        return torch.bmm(self.weight[:active, None], rows)

    def spread(self, gradient: Tensor, active: int) -> Tensor:
        """Gradient of the rows ``[active * most, d]`` from that of the prototypes ``[active, 1, d]``."""
        return (self.weight[:active, :, None] * gradient).reshape(-1, gradient.shape[-1])


@dataclass(frozen=True)
class _Job:
    block: Block
    samples: Samples
    items: NDArray[np.int64]  # [samples] item of each sample
    counts: Int64
    users: Float32
    shared: Float32
    private: Float32
    networks: dict[str, Array]
    backbone: Backbone
    objective: Objective
    keys: U64
    device: str
    closed: bool
    in_place: bool
    local: threading.local
    users_out: Float32
    shared_out: Float32
    networks_out: dict[str, Float32] = field(default_factory=dict)
    loss: NDArray[np.float64] = field(default_factory=lambda: np.zeros(0))


def closed_form_fits(objective: Objective, backbone: Backbone) -> bool:
    """Whether gradients are written out for this variant."""
    return (
        backbone.kernel is not None
        and objective.transfer != "unified"
        and (not objective.beta_a or objective.consistency == "ranking")
        and (not objective.beta_o or objective.complementarity == "orthogonal")
    )


def train_two_tables(
    block: Block,
    samples: Samples,
    users: Float32,
    shared: Float32,
    private: Float32,
    networks: dict[str, Array],
    backbone: Backbone,
    objective: Objective,
    keys: U64,
    *,
    engine: str = "auto",
    device: str = "cpu",
    threads: int | None = None,
) -> TwoTablesTrained:
    """Train every client of a block.

    ``shared`` ``[m, d]`` is what all downloaded; ``private`` ``[clients, m, d]`` is written in place.
    ``networks``: ``bias`` ``[users]`` for the affine scorer, layers of the backbone and of the transfer
    generator once for all clients. ``keys`` ``[clients]`` order the mini-batches. ``engine``: ``torch`` for torch's
    own gradients; ``closed`` for those written out, in torch alone; ``auto`` for the fastest that fits.
    """
    if private.shape != (block.n_clients, *shared.shape):
        raise BadInput(f"private tables have shape {private.shape}; give {(block.n_clients, *shared.shape)}")
    if samples.pairs:
        raise BadInput("two-table training takes pointwise samples; use objective=bce")
    host = samples.on_host()
    owner = np.repeat(np.arange(block.n_clients), np.diff(host.start))
    job = _Job(
        block, host, host.rows_ids[host.rows_start[owner] + host.row].astype(np.int64), np.diff(host.start),
        users, shared, private, networks, backbone, objective, keys, device,
        closed=engine != "torch" and closed_form_fits(objective, backbone),
        in_place=engine == "auto" and device == "cpu" and has_numba(),
        local=threading.local(),
        users_out=np.array(users, np.float32),
        shared_out=_room((block.n_clients, *shared.shape), device),
        networks_out={
            name: _room(array.shape if name == "bias" else (block.n_clients, *array.shape), device)
            for name, array in networks.items()
        },
        loss=np.zeros(block.n_clients),
    )  # fmt: skip
    idle = np.flatnonzero(job.counts == 0)  # what trained is overwritten, so only these are cleared
    job.shared_out[idle] = 0
    for name, out in job.networks_out.items():
        out[segments(block.user_start, idle) if name == "bias" else idle] = 0
    limit = max(1, (CPU_NUMBERS if device == "cpu" else DEVICE_NUMBERS) // max(1, shared.size))
    chunks = list(_chunks(job.counts, limit))
    over_chunks(partial(_train_chunk, job), chunks, device, threads)
    return TwoTablesTrained(job.users_out, job.shared_out, job.loss, dict(job.networks_out))


def _chunks(counts: Int64, limit: int) -> Iterator[Int64]:
    """Clients that have samples, largest first."""
    falling = np.argsort(-counts, kind="stable").astype(np.int64)[: int((counts > 0).sum())]
    for first in range(0, len(falling), limit):
        yield falling[first : first + limit]


def _train_chunk(job: _Job, clients: Int64) -> None:
    """All epochs of some clients, written into the job's outputs."""
    from fedrec.learn.two_tables_autograd import autograd_step
    from fedrec.learn.two_tables_closed import closed_step

    block, chosen, device = job.block, job.objective, job.device
    counts, epochs, batch = job.counts[clients], chosen.epochs, chosen.batch_size
    batches = -(-counts // batch)
    steps = batches * epochs
    users = segments(block.user_start, clients)
    users_at = offsets(np.diff(block.user_start)[clients])

    def there(array: Array) -> Tensor:
        return torch.from_numpy(np.ascontiguousarray(array)).to(device)

    scratch: Scratch | None = getattr(job.local, "scratch", None)
    if scratch is None:
        scratch = job.local.scratch = Scratch(device)

    def copies(name: str, array: Array) -> Tensor:
        return scratch.take(name, len(clients), *array.shape).copy_(there(array))

    n_items = len(job.shared)
    state = State(
        shared=copies("C", job.shared),
        private=_own_tables(job.private, clients, scratch),
        users=there(job.users[users].astype(np.float32)).clone(),
        networks={
            name: there(array[users]).clone() if name == "bias" else copies(name, array)
            for name, array in job.networks.items()
        },
        client_of_user=there(np.repeat(np.arange(len(clients)), np.diff(users_at))),
        scratch=scratch,
        in_place=job.in_place,
    )
    positives = _positives(block, clients, n_items, device)
    order = _Order.build(job, clients, counts, users, users_at)
    step = closed_step if job.closed else autograd_step
    losses = torch.zeros(len(clients), device=device)
    for k in range(int(steps[0])):
        active = int(np.searchsorted(-steps, -k))  # clients that make more than k steps
        now = order.batch(k, active, counts, batches, batch, n_items, chosen.reduction)
        each = step(state, now, positives, chosen, job.backbone)  # [active, width]
        last = torch.from_numpy(k // batches[:active] == epochs - 1).to(device)
        losses[:active] += (each * now.inside).sum(1) * last

    _put_changes(job.shared_out, clients, state.shared, there(job.shared))
    if device != "cpu" or len(clients) > 1:  # one client's table was trained in its place
        _put(job.private, clients, state.private)
    job.users_out[users] = state.users.cpu().numpy()
    job.loss[clients] = losses.double().cpu().numpy() / counts
    for name, value in state.networks.items():
        if name == "bias":
            job.networks_out[name][users] = value.cpu().numpy() - job.networks[name][users]
        else:
            _put_changes(job.networks_out[name], clients, value, there(job.networks[name]))


def _room(shape: tuple[int, ...], device: str) -> Float32:
    """An array to be filled; page-locked where it is filled from another device, which copies it much faster."""
    if device.startswith("cuda"):
        return np.asarray(torch.empty(shape, pin_memory=True).numpy())
    return np.empty(shape, np.float32)


def _own_tables(private: Float32, clients: Int64, scratch: Scratch) -> Tensor:
    """Private tables of a chunk; a view of the one client's where that is all there is."""
    tables, device = torch.from_numpy(np.asarray(private)), scratch.device
    if len(clients) == 1 and device == "cpu":
        return tables[clients[0] : clients[0] + 1]
    out = scratch.take("V", len(clients), *private.shape[1:])
    order = np.argsort(clients)
    if device != "cpu" and consecutive(clients[order]):  # one copy to the device, put in order there
        first = int(clients.min())
        there = tables[first : first + len(clients)].to(device)
        return torch.index_select(there, 0, torch.from_numpy(clients - first).to(device), out=out)
    for position, client in enumerate(clients):
        out[position].copy_(tables[client])
    return out


def _put(into: Float32, clients: Int64, values: Tensor) -> None:
    """``into[clients] = values`` from any device, without a copy in between where they are a run."""
    target = torch.from_numpy(np.asarray(into))
    order = np.argsort(clients)
    if values.device.type != "cpu" and consecutive(clients[order]):
        first = int(clients[order[0]])
        target[first : first + len(clients)].copy_(values.index_select(0, torch.from_numpy(order).to(values.device)))
        return
    for position, client in enumerate(clients):
        target[client].copy_(values[position])


def _put_changes(into: Float32, clients: Int64, values: Tensor, before: Tensor) -> None:
    """``into[clients] = values - before``; ``values`` may be spoilt."""
    if values.device.type != "cpu":
        _put(into, clients, values.sub_(before))
        return
    target = torch.from_numpy(into)
    for position, client in enumerate(clients):
        torch.sub(values[position], before, out=target[client])


def _positives(block: Block, clients: Int64, n_items: int, device: str) -> Positives:
    start = block.train.start[block.user_start]
    counts = np.diff(start)[clients]
    most = max(1, int(counts.max(initial=0)))
    flat = np.zeros((len(clients), most), np.int64)
    inside = np.arange(most) < counts[:, None]
    flat[inside] = block.train.values[segments(start, clients)]
    flat += np.arange(len(clients))[:, None] * n_items
    weight = inside / np.maximum(counts, 1)[:, None]
    return Positives(torch.from_numpy(flat).to(device), torch.from_numpy(weight.astype(np.float32)).to(device))


@dataclass(frozen=True)
class _Order:
    """A chunk's samples in the order of training, all epochs; the last entry is padding."""

    items: Tensor
    owner: Tensor
    label: Tensor
    base: Int64
    users_at: Int64
    total: int

    @staticmethod
    def build(job: _Job, clients: Int64, counts: Int64, users: Int64, users_at: Int64) -> _Order:
        epochs, device = job.objective.epochs, job.device
        local = orders(counts, from_words(job.keys[clients], device), epochs).cpu().numpy()
        sample = local + np.repeat(job.samples.start[clients], counts * epochs)
        place = np.zeros(job.block.n_users, np.int64)
        place[users] = np.arange(len(users))

        def padded(values: Array) -> Tensor:
            return torch.from_numpy(np.append(values, values.dtype.type(0))).to(device)

        return _Order(
            padded(job.items[sample]),
            padded(place[job.samples.user[sample]]),
            padded(job.samples.label[sample].astype(np.float32)),
            offsets(counts)[:-1] * epochs,
            users_at,
            len(sample),
        )

    def batch(
        self, k: int, active: int, counts: Int64, batches: Int64, size: int, n_items: int, reduction: str
    ) -> Batch:
        """The k-th mini-batch of each active client."""
        device = self.items.device
        n, nb = counts[:active], batches[:active]
        begin = (k % nb) * size
        length = np.minimum(n - begin, size)
        width = int(length.max())
        inside = np.arange(width) < length[:, None]
        index = (self.base[:active] + (k // nb) * n + begin)[:, None] + np.arange(width)
        where = torch.from_numpy(np.where(inside, index, self.total).reshape(-1)).to(device)
        shape = (active, width)
        rows = self.items.index_select(0, where).view(shape)
        weight = inside / (length[:, None] if reduction == "mean" else 1.0)
        first = torch.from_numpy(self.users_at[:active]).to(device)[:, None]
        held = torch.from_numpy(inside).to(device)
        return Batch(
            active=active,
            users=int(self.users_at[active]),
            rows=rows,
            flat=(rows + torch.arange(active, device=device)[:, None] * n_items).view(-1),
            owner=torch.where(held, self.owner.index_select(0, where).view(shape), first),
            label=self.label.index_select(0, where).view(shape),
            weight=torch.from_numpy(weight.astype(np.float32)).to(device),
            inside=held,
        )
