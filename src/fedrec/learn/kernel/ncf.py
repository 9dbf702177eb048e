"""Calling the kernel of perceptrons: networks as its blocks in, a :class:`Trained` out."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

import numpy as np

from fedrec.core.messages import Array, Float32
from fedrec.learn.kernel.call import batches, on_all_cores
from fedrec.learn.kernel.layers import padded
from fedrec.learn.kernel.ncf_clients import train_clients
from fedrec.learn.trained import Trained, Work, shared_networks


def train_layers(work: Work) -> Trained:
    """Train on all cores; see :func:`fedrec.learn.train.train_block`."""
    block, samples, settings = work.block, work.samples.on_host(), work.settings
    dim = work.users.shape[1]
    shared = shared_networks(work.backbone, work.networks, block, dim)
    alike = len(shared) == len(work.networks)  # one copy of the networks, not one a client
    each = {
        name: array[None]
        if alike
        else np.broadcast_to(array, (block.n_clients, *array.shape[int(name not in shared) :]))
        for name, array in work.networks.items()
    }
    widths = np.array([dim, *(each[f"bias_{layer}"].shape[1] for layer in range(len(each) // 2))], np.int64)
    size, plan = batches(samples, settings)
    networks = _blocks(each, dim)
    networks_out = np.empty((block.n_clients, networks.shape[1]), np.float32)
    own = (
        networks, not alike, networks_out, widths, np.float32(work.lr_users), np.float32(work.lr_items),
        np.float32(settings.lr), np.float32(settings.weight_decay), settings.optimizer == "adam", samples.pairs, plan,
    )  # fmt: skip
    trained = on_all_cores(
        train_clients, block, samples, work.users, work.table, work.keys, settings.epochs, size, own, work.threads
    )
    return replace(trained, networks=_unpacked(networks_out, each, dim))


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
