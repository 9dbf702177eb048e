"""Training and reading a sequential backbone for a block of clients, in batched torch.

A user's training items in time order are one sequence (in a random order where there are no times); position by
position the next item is told from random items that the user does not have (binary cross-entropy). Clients are
stacked: losses are summed over them, so each one's gradient is its own, and all of a group make the same number of
steps, in lockstep.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor
from torch.nn.functional import embedding, logsigmoid  # embedding: the gradient of rows[i] has no fixed order

from fedrec import keyed
from fedrec.backbones.sasrec import SasRec
from fedrec.core.block import Block
from fedrec.core.messages import Array, Float32, Rows
from fedrec.data.ragged import Int32, Int64, segments
from fedrec.keyed import U64
from fedrec.learn.lockstep import Lockstep, chunks
from fedrec.learn.samples import compact_rows, nth_free
from fedrec.learn.trained import LocalSettings, Trained, shared_networks, stacked, unmoved

TOKENS = 1 << 16
"""Positions of sequences that are handled at once."""


@dataclass(frozen=True)
class Sequences:
    """The latest items of some users, right-aligned; -1 is padding."""

    inputs: Int64  # [users, length]
    targets: Int64  # [users, length] the item after each input
    negatives: Int64  # [users, length * N] N items at a time that the user does not have
    latest: Int64  # [users, length] what the next item is predicted from


def sequences(block: Block, length: int, keys: U64, negatives: int = 1) -> Sequences:
    """Sequences of every user of a block; ``keys`` ``[users]`` streams for the negatives, ``negatives`` a position."""
    counts, ends = block.train.counts, block.train.start[1:]
    items = block.train.values if block.ordered else shuffled_items(block)
    place = np.arange(-length, 0)  # [length] positions from the end

    def cut(shift: int) -> Int64:
        at = ends[:, None] + place[None, :] - shift
        inside = at >= (ends - counts)[:, None]
        values = items[np.maximum(at, 0)] if len(items) else np.zeros(at.shape)
        return np.where(inside, values, -1).astype(np.int64)

    latest = cut(0)
    inputs = cut(1)
    targets = np.where(inputs >= 0, latest, -1)
    free = block.n_items - block.exclude.counts
    words = keyed.words(keys, length * negatives)
    rank = ((words >> np.uint64(32)) * free[:, None].astype(np.uint64) >> np.uint64(32)).astype(np.int64)
    exclude = block.exclude.values if len(block.exclude.values) else np.zeros(1, np.int32)
    wide = np.broadcast_to(block.exclude.start[:-1, None], rank.shape).ravel()
    many = np.broadcast_to(block.exclude.counts[:, None], rank.shape).ravel()
    drawn = nth_free(exclude, wide, many, rank.ravel()).reshape(rank.shape)
    usable = (targets >= 0) & (free > 0)[:, None]
    targets = np.where(usable, targets, -1)
    told = np.where(np.repeat(usable, negatives, axis=1), drawn, -1)
    return Sequences(np.where(usable, inputs, -1), targets, told, latest)


def shuffled_items(block: Block) -> Int32:
    """Training items, each user's in a random order that depends on the user's own items alone."""
    train, owner = block.train, block.train.owners
    words = keyed.streams(keyed.stream(0, "no times"), train.values.astype(np.uint64))
    own = np.zeros(block.n_users, np.uint64)
    np.add.at(own, owner, words)
    return train.values[np.lexsort((keyed.mix(words + keyed.mix(own)[owner]), owner))]


def train_sequences(
    block: Block,
    table: Float32,
    settings: LocalSettings,
    draws: U64,
    keys: U64,
    backbone: SasRec,
    networks: dict[str, Array],
    device: str = "cpu",
    proximal: float = 0.0,
    lr_items: float | None = None,
    lr_users: float | None = None,
    negatives: int = 1,
) -> Trained:
    """Train every client of a block on its users' sequences; see :func:`fedrec.learn.train.train_block`.

    ``draws`` ``[users]`` streams for negatives, ``keys`` ``[clients]`` for the order of sequences (batches hold
    ``batch_size`` sequences). The users that come back are the states after each user's latest items, with the
    trained model; ``lr_users`` means nothing here.
    """
    cut = sequences(block, backbone.length, draws, negatives)
    shared = shared_networks(backbone, networks, block, table.shape[-1])
    out = Trained(
        users=np.zeros((block.n_users, table.shape[-1]), np.float32),
        rows=_compact(block, cut, table.shape[-1]),
        loss=np.zeros(block.n_clients),
        networks=unmoved(networks, shared, block.n_clients),
    )
    rate = settings.lr if lr_items is None else lr_items
    for clients in _groups(block, settings.batch_size, backbone.length):
        group = _Group(block, cut, out.rows, table, networks, shared, clients, device)
        _train_group(group, out, settings, keys, backbone, rate, proximal)
    return out


def represented(
    block: Block, table: Float32, backbone: SasRec, networks: dict[str, Array], device: str = "cpu"
) -> Float32:
    """The state after each user's latest items ``[users, d]``, with a table and network as they are."""
    cut = sequences(block, backbone.length, np.zeros(block.n_users, np.uint64))
    shared = shared_networks(backbone, networks, block, table.shape[-1])
    rows = _compact(block, cut, table.shape[-1])
    found = np.zeros((block.n_users, table.shape[-1]), np.float32)
    for clients in _groups(block, block.n_users + 1, backbone.length):
        group = _Group(block, cut, rows, table, networks, shared, clients, device)
        found[group.users] = group.states(group.start_rows(), group.stacked(), backbone)
    return found


def _compact(block: Block, cut: Sequences, dim: int) -> Rows:
    """The items that each client touches, ascending, with changes of zero."""
    touched = np.concatenate([cut.inputs, cut.targets, cut.negatives, cut.latest], axis=1)
    place = block.client_of_user[:, None] * np.int64(block.n_items) + touched
    start, ids, _ = compact_rows(place[touched >= 0], block)
    return Rows(start, ids, np.zeros((len(ids), dim), np.float32), block.n_items)


def _groups(block: Block, batch: int, length: int) -> Iterator[Int64]:
    """Clients that make the same number of steps an epoch, as many at once as there is room for."""
    users = np.diff(block.user_start)
    steps = -(-users // batch)
    room = max(1, TOKENS // length)
    for count in np.unique(steps[steps > 0]):
        alike = np.flatnonzero(steps == count)
        alike = alike[np.argsort(users[alike], kind="stable")]
        wide = users[alike] if count == 1 else np.minimum(users[alike], batch)

        def fitting(at: int, wide: Int64 = wide) -> int:
            return int((wide[at:] * np.arange(1, len(wide) - at + 1) <= room).sum())

        yield from chunks(alike, fitting)


class _Group:
    """Some clients with their sequences as indices into their own compact rows."""

    def __init__(
        self,
        block: Block,
        cut: Sequences,
        rows: Rows,
        table: Float32,
        networks: dict[str, Array],
        shared: frozenset[str],
        clients: Int64,
        device: str,
    ) -> None:
        self.clients, self.device, self.networks, self.shared = clients, device, networks, shared
        self.users = segments(block.user_start, clients)
        self.counts = np.diff(block.user_start)[clients]
        self.where = segments(rows.start, clients)
        ids = rows.ids[self.where].astype(np.int64)
        owner = np.repeat(np.arange(len(clients)), np.diff(rows.start)[clients])
        self.values = table[ids] if table.ndim == 2 else table[clients[owner], ids]
        self.padding = len(ids)  # one more row, of zeros
        known = owner * np.int64(block.n_items) + ids
        holder = np.repeat(np.arange(len(clients)), self.counts)

        def placed(items: Int64) -> Int64:
            at = np.searchsorted(known, holder[:, None] * np.int64(block.n_items) + items)
            return np.where(items >= 0, at, self.padding)

        self.inputs, self.targets = placed(cut.inputs[self.users]), placed(cut.targets[self.users])
        self.negatives, self.latest = placed(cut.negatives[self.users]), placed(cut.latest[self.users])

    def start_rows(self) -> Tensor:
        """Values of the compact rows ``[rows + 1, d]``; the last is padding."""
        padded = np.concatenate([self.values, np.zeros((1, self.values.shape[1]), np.float32)])
        return torch.from_numpy(np.ascontiguousarray(padded, np.float32)).to(self.device)

    def stacked(self) -> dict[str, Tensor]:
        """Networks ``[clients of the group, ...]``."""
        each = {name: stacked(array, name in self.shared, self.clients) for name, array in self.networks.items()}
        return {name: torch.from_numpy(array).to(self.device) for name, array in each.items()}

    def grid(self, order: Int64, first: int, width: int) -> Int64:
        """Rows of the group's sequences ``[clients, width]`` in a step's batch; -1 is padding."""
        at = np.arange(first, first + width)
        begin = (np.cumsum(self.counts) - self.counts)[:, None]
        inside = at[None, :] < self.counts[:, None]
        return np.where(inside, order[np.minimum(begin + at, len(order) - 1)], -1)

    def picked(self, which: Int64, of: Int64) -> Tensor:
        """Row numbers ``[clients, width, length]`` of the sequences in a grid."""
        rows = np.where((which >= 0)[..., None], of[np.maximum(which, 0)], self.padding)
        return torch.from_numpy(rows).to(self.device)

    def states(self, rows: Tensor, networks: dict[str, Tensor], backbone: SasRec) -> Float32:
        """The last state of every user of the group ``[users, d]``."""
        found = np.zeros((len(self.users), rows.shape[1]), np.float32)
        step = max(1, TOKENS // (self.latest.shape[1] * max(1, len(self.clients))))
        with torch.no_grad():
            for first in range(0, int(self.counts.max(initial=0)), step):
                which = self.grid(np.arange(len(self.users)), first, step)
                index = self.picked(which, self.latest)
                states = backbone.represent(rows[index], index != self.padding, networks)[:, :, -1]
                there = which >= 0
                found[which[there]] = states.cpu().numpy()[there]
        return found


def _train_group(
    group: _Group, out: Trained, settings: LocalSettings, keys: U64, backbone: SasRec, rate: float, proximal: float
) -> None:
    """All epochs of a group, written into the outputs."""
    start = group.start_rows()
    rows, networks = start.clone().requires_grad_(), {n: v.requires_grad_() for n, v in group.stacked().items()}
    before = {name: value.detach().clone() for name, value in networks.items()}
    kind = torch.optim.Adam if settings.optimizer == "adam" else torch.optim.SGD
    optimiser = kind([
        {"params": [rows], "lr": rate, "weight_decay": 0.0},
        {"params": list(networks.values()), "lr": settings.lr, "weight_decay": settings.weight_decay},
    ])  # fmt: skip
    total = np.zeros(len(group.clients))
    count = np.zeros(len(group.clients))
    for step in Lockstep(group.counts, settings.batch_size, settings.epochs):
        epoch, begin = int(step.epoch[0]), int(step.begin[0])  # all of a group are at the same mini-batch
        if begin == 0:
            order = _shuffled(group, keys, epoch)
        which = group.grid(order, begin, step.width)
        inputs, targets = group.picked(which, group.inputs), group.picked(which, group.targets)
        real = targets != group.padding
        states = backbone.represent(embedding(inputs, rows), inputs != group.padding, networks)
        positive = (states * embedding(targets, rows)).sum(-1)
        told = group.picked(which, group.negatives).view(*targets.shape, -1)  # [clients, width, length, N]
        negative = (states.unsqueeze(-2) * embedding(told, rows)).sum(-1)
        each = -(logsigmoid(positive) + logsigmoid(-negative).sum(-1)) * real  # [clients, width, length]
        positions = real.sum((1, 2))
        loss = (each.sum((1, 2)) / positions.clamp(min=1)).sum()
        if proximal > 0:
            loss = loss + proximal / 2 * ((rows - start) ** 2).sum()
        optimiser.zero_grad()
        torch.autograd.backward(loss)
        if rows.grad is not None:
            rows.grad[group.padding] = 0
        optimiser.step()
        if epoch == settings.epochs - 1:
            total += each.detach().sum((1, 2)).double().cpu().numpy()
            count += positions.cpu().numpy()
    out.rows.values[group.where] = (rows - start).detach()[: group.padding].cpu().numpy()
    out.loss[group.clients] = total / np.maximum(count, 1)
    trained = {name: value.detach() for name, value in networks.items()}
    for name, value in trained.items():
        out.networks[name][group.clients] = (value - before[name]).cpu().numpy()
    out.users[group.users] = group.states(rows.detach(), trained, backbone)


def _shuffled(group: _Group, keys: U64, epoch: int) -> Int64:
    """The group's sequences in this epoch's order, client after client."""
    holder = np.repeat(np.arange(len(group.clients)), group.counts)
    within = np.arange(len(holder)) - (np.cumsum(group.counts) - group.counts)[holder]
    streams = keyed.streams(keyed.stream(epoch, "sequences"), keys[group.clients])
    words = keyed.mix(streams[holder] + (within.astype(np.uint64) + np.uint64(1)) * np.uint64(keyed.GOLDEN))
    return np.lexsort((words, holder)).astype(np.int64)
