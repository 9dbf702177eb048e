"""Calling the kernel of perceptrons: networks as its blocks in, a :class:`Trained` out."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from fedrec.core.messages import Array, Float32, Rows
from fedrec.learn.adam import schedule
from fedrec.learn.kernel.layers import padded
from fedrec.learn.kernel.ncf_clients import train_clients
from fedrec.learn.trained import Trained, Work, shared_networks
from fedrec.threads import over_pieces


def train_layers(work: Work) -> Trained:
    """Train on all cores; see :func:`fedrec.learn.train.train_block`."""
    block, samples, settings = work.block, work.samples.on_host(), work.settings
    users, table, dim = work.users, work.table, work.users.shape[1]
    shared = shared_networks(work.backbone, work.networks, block, dim)
    alike = len(shared) == len(work.networks)  # one copy of the networks, not one a client
    each = {
        name: array[None]
        if alike
        else np.broadcast_to(array, (block.n_clients, *array.shape[int(name not in shared) :]))
        for name, array in work.networks.items()
    }
    widths = np.array([dim, *(each[f"bias_{layer}"].shape[1] for layer in range(len(each) // 2))], np.int64)
    adam, pairs = settings.optimizer == "adam", samples.pairs
    counts = np.diff(samples.start)
    most = int(counts.max(initial=0))
    batch_size = min(settings.batch_size, max(1, most))  # a thread's scratch has the size of a batch
    steps = settings.epochs * (-(-most // batch_size))

    networks = _blocks(each, dim)
    networks_out = np.empty((block.n_clients, networks.shape[1]), np.float32)
    users_out = np.empty(users.shape, np.float32)
    changes = np.empty((len(samples.rows_ids), dim), np.float32)
    loss = np.zeros(block.n_clients)
    tables = np.asarray(table if table.ndim == 3 else table[None], np.float32)
    arguments = (
        samples.start, samples.user, samples.row,
        samples.negative if pairs else np.zeros(0, np.int32), samples.label,
        samples.rows_start, samples.rows_ids, np.ascontiguousarray(block.user_start),
        tables, table.ndim == 3, np.asarray(users, np.float32), users_out,
        networks, not alike, networks_out, widths, changes, loss,
        np.ascontiguousarray(work.keys), settings.epochs, batch_size,
        np.float32(work.lr_users), np.float32(work.lr_items), np.float32(settings.lr),
        np.float32(settings.weight_decay), adam, pairs, schedule(steps).stacked() if adam else np.zeros((8, 1)),
    )  # fmt: skip
    over_pieces(train_clients, counts * settings.epochs + np.diff(samples.rows_start), arguments, work.threads)
    return Trained(
        users=users_out,
        rows=Rows(samples.rows_start, samples.rows_ids, changes, block.n_items),
        loss=loss,
        networks=_unpacked(networks_out, each, dim),
    )


def _parts(networks: dict[str, Array], dim: int) -> Iterator[Array]:
    """Views ``[clients, inputs, outputs]`` in the kernel's order: the users' half of the first layer comes last."""
    for layer in range(len(networks) // 2):
        weights = networks[f"weight_{layer}"].swapaxes(1, 2)
        yield weights if layer else weights[:, dim:]
        yield networks[f"bias_{layer}"][:, None]
    yield networks["weight_0"].swapaxes(1, 2)[:, :dim]


def _room(part: Array) -> tuple[int, int]:
    """Inputs and outputs with padding; a bias has no inputs to pad."""
    inputs, outputs = part.shape[1:]
    return inputs if inputs == 1 else padded(inputs), padded(outputs)


def _blocks(networks: dict[str, Array], dim: int) -> Float32:
    """``[clients, numbers]`` as the kernel has them."""
    found = []
    for part in _parts(networks, dim):
        whole = np.zeros((len(part), *_room(part)), np.float32)
        whole[:, : part.shape[1], : part.shape[2]] = part
        found.append(whole.reshape(len(part), -1))
    return np.concatenate(found, axis=1)


def _unpacked(blocks: Float32, like: dict[str, Array], dim: int) -> dict[str, Array]:
    """The same backwards: networks named and shaped as ``like``, one a client."""
    found: dict[str, Array] = {
        name: np.empty((len(blocks), *array.shape[1:]), np.float32) for name, array in like.items()
    }
    first = 0
    for part in _parts(found, dim):
        room = _room(part)
        last = first + room[0] * room[1]
        part[:] = blocks[:, first:last].reshape(-1, *room)[:, : part.shape[1], : part.shape[2]]
        first = last
    return found
