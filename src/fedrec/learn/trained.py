"""What a block of clients trains, by what, and what comes out."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from fedrec.backbones.base import Backbone
from fedrec.core.block import Block
from fedrec.core.messages import Array, Float32, Rows
from fedrec.data.ragged import Int64
from fedrec.errors import BadInput
from fedrec.keyed import U64
from fedrec.learn.sample_arrays import Samples


class LocalSettings(Protocol):
    """What training reads of a method's settings (``core.settings.TrainingSettings`` fits)."""

    @property
    def epochs(self) -> int: ...
    @property
    def batch_size(self) -> int: ...
    @property
    def lr(self) -> float: ...
    @property
    def optimizer(self) -> str: ...
    @property
    def weight_decay(self) -> float: ...
    @property
    def objective(self) -> str: ...
    @property
    def engine(self) -> str: ...


@dataclass(frozen=True)
class Work:
    """What an engine is given: the arguments of :func:`fedrec.learn.train.train_block`, checked and complete."""

    block: Block
    samples: Samples
    users: Float32
    table: Float32
    settings: LocalSettings
    keys: U64
    backbone: Backbone
    networks: dict[str, Array]
    device: str
    proximal: float
    lr_users: float
    lr_items: float
    threads: int | None


@dataclass(frozen=True)
class Trained:
    """What a block's local training gives."""

    users: Float32  # [users, d] new values
    rows: Rows  # changes of item rows against the table that came in
    loss: NDArray[np.float64]  # [clients] mean loss of the last local epoch
    networks: dict[str, Array] = field(default_factory=dict)
    """Changes of network parameters ``[clients, ...]`` (of ``bias`` ``[users]`` for the affine scorer)."""


def shared_networks(backbone: Backbone, networks: dict[str, Array], block: Block, dim: int) -> frozenset[str]:
    """Which networks came once for all clients; a shape that fits neither way is bad input."""
    wanted = {name: array.shape[1:] for name, array in backbone.start(np.zeros(1, np.uint64), dim).items()}
    if set(wanted) != set(networks):
        raise BadInput(f"backbone {backbone.name} needs networks {sorted(wanted)}, not {sorted(networks)}")
    found = set()
    for name, shape in wanted.items():
        stacked = block.n_users if name in backbone.per_user else block.n_clients
        if networks[name].shape == shape and name not in backbone.per_user:
            found.add(name)
        elif networks[name].shape != (stacked, *shape):
            raise BadInput(
                f"network {name} has shape {networks[name].shape}; give {shape}, or {stacked} of them stacked"
            )
    return frozenset(found)


def stacked(array: Array, shared: bool, places: Int64) -> Float32:
    """A network of these clients (or users), one after another, as a copy; ``shared``: it came once for all."""
    return np.array(np.broadcast_to(array, (len(places), *array.shape)) if shared else array[places], np.float32)


def unmoved(networks: dict[str, Array], shared: frozenset[str], clients: int) -> dict[str, Float32]:
    """Room for the changes of all clients' networks: zeros."""
    shapes = {name: (clients, *one.shape) if name in shared else one.shape for name, one in networks.items()}
    return {name: np.zeros(shape, np.float32) for name, shape in shapes.items()}


def check_fit(block: Block, samples: Samples, users: Float32, table: Float32) -> None:
    """Refuse what does not fit together: kernels look nowhere but where they are told."""
    if users.ndim != 2 or len(users) != block.n_users:
        raise BadInput(f"users have shape {users.shape}; the block needs [{block.n_users}, d]")
    wanted = (block.n_items, users.shape[1])
    if table.shape[-2:] != wanted or table.ndim not in (2, 3):
        raise BadInput(f"item table has shape {table.shape}; the block needs [{wanted[0]}, {wanted[1]}]")
    if table.ndim == 3 and table.shape[0] != block.n_clients:
        raise BadInput(f"{table.shape[0]} personal tables for {block.n_clients} clients; give one each")
    if len(samples.start) != block.n_clients + 1:
        raise BadInput(f"samples of {len(samples.start) - 1} clients for a block of {block.n_clients}")
