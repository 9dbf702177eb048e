"""All clients of a task as one block, and the way back to the data's own users."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from fedrec import keyed
from fedrec.core.block import Block, World
from fedrec.data.ragged import Int64, offsets
from fedrec.evaluation.task import Task


@dataclass(frozen=True)
class Population:
    """Every client with its data. Only a simulator ever holds one; a node holds its own clients' part."""

    world: World
    block: Block
    users: Int64
    """``[users]`` the data's index of each user in the block's order."""
    client_ids: tuple[str, ...]


def population(task: Task) -> Population:
    """The clients of a task: one per user, or as the data's partition says.

    A client's randomness is keyed by its own id, so the order of clients changes nothing.
    """
    data = task.data
    if data.client_of_user is None:
        users = np.arange(data.n_users)
        client_ids = tuple(str(name) for name in data.user_ids)
        counts = np.ones(data.n_users, np.int64)
    else:
        users = np.argsort(data.client_of_user, kind="stable")
        names = data.client_ids if data.client_ids is not None else np.unique(data.client_of_user)
        client_ids = tuple(str(name) for name in names)
        counts = np.bincount(data.client_of_user, minlength=len(client_ids)).astype(np.int64)
    user_keys = keyed.keys_of(data.user_ids)[users]
    train = task.train.take(users)
    block = Block(
        n_items=data.n_items,
        clients=np.arange(len(client_ids)),
        client_keys=keyed.keys_of(client_ids),
        user_start=offsets(counts),
        user_keys=user_keys,
        train=train,
        exclude=task.exclude.take(users),
        ordered=data.times is not None,
        valid=task.valid.take(users),
    )
    return Population(World(data.name, data.n_items, data.n_users, len(client_ids)), block, users, client_ids)
