"""All clients of a task as one block, and the way back to the data's own users."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from fedrec import keyed
from fedrec.core.block import Block, World
from fedrec.data.ragged import Int64, Ragged, offsets
from fedrec.errors import BadInput
from fedrec.evaluation.task import Task, sort_lists


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

    A client's randomness is keyed by its own id, so the order of clients changes nothing. Users that are held out
    whole belong to no client.
    """
    data = task.data
    if len(task.newcomers) and data.client_of_user is not None:
        raise BadInput(f"{task.protocol.name} holds out whole users, each a client of its own; leave clients out")
    if data.client_of_user is None:
        users = np.setdiff1d(np.arange(data.n_users), task.newcomers)
        client_ids = tuple(str(name) for name in data.user_ids[users])
        counts = np.ones(len(users), np.int64)
    else:
        users = np.argsort(data.client_of_user, kind="stable")
        names = data.client_ids if data.client_ids is not None else np.unique(data.client_of_user)
        client_ids = tuple(str(name) for name in names)
        counts = np.bincount(data.client_of_user, minlength=len(client_ids)).astype(np.int64)
    user_keys = task.user_keys[users]
    train = task.train.take(users)
    block = Block(
        n_items=data.n_items,
        clients=np.arange(len(client_ids)),
        client_keys=user_keys if data.client_of_user is None else keyed.keys_of(client_ids),
        user_start=offsets(counts),
        user_keys=user_keys,
        train=train,
        exclude=task.exclude.take(users),
        ordered=data.times is not None,
        valid=task.valid.take(users),
    )
    return Population(World(data.name, data.n_items, len(users), len(client_ids)), block, users, client_ids)


def newcomers(task: Task) -> Population:
    """The users that are held out whole, each a client of its own that is served and never trained."""
    users = task.newcomers
    block = new_block(task.train.take(users), task.data.n_items, task.user_keys[users])
    world = World(task.data.name, task.data.n_items, len(users), len(users))
    return Population(world, block, users, tuple(str(name) for name in task.data.user_ids[users]))


def new_block(histories: Ragged, n_items: int, keys: keyed.U64 | None = None) -> Block:
    """New clients with one user each, in the order of their histories; without keys a history is its own."""
    if keys is None:
        keys = keyed.keys_of(sorted(histories[user].tolist()) for user in range(len(histories)))
    return Block(
        n_items=n_items,
        clients=np.arange(len(histories)),
        client_keys=keys,
        user_start=np.arange(len(histories) + 1),
        user_keys=keys,
        train=histories,
        exclude=sort_lists(histories),
    )
