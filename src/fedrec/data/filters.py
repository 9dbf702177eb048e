"""Other users of the same data: without those who have too few interactions, as in the papers, or several times."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from fedrec.data.interactions import Interactions, renumbered
from fedrec.data.ragged import placed
from fedrec.errors import BadInput


def at_least(data: Interactions, interactions: int) -> Interactions:
    """Keep users with at least this many interactions (once, users only); drop items without any."""
    if interactions < 0:
        raise BadInput(f"min_interactions must be 0 or more, not {interactions}")
    counts = np.bincount(data.users, minlength=data.n_users)
    stay = counts >= interactions
    if stay.all():
        return data
    if not stay.any():
        raise BadInput(
            f"{data.name}: none of {data.n_users} users has {interactions} interactions (the most is "
            f"{int(counts.max())}); lower min_interactions"
        )
    left = int((~stay).sum())
    return keep_users(data, stay).with_notes(f"{left} users with fewer than {interactions} interactions left out")


def keep_users(data: Interactions, stay: NDArray[np.bool_]) -> Interactions:
    """The data of these users alone, renumbered in the same order; unused items and clients go."""
    rows = stay[data.users]
    new_user = np.cumsum(stay, dtype=np.int32) - np.int32(1)
    used, items = renumbered(data.items[rows])
    low = None if data.rated_low is None else data.rated_low.take(np.flatnonzero(stay))
    if low is not None:
        place = np.full(data.n_items, -1)
        place[used] = np.arange(len(used))
        low = placed(low, place)
    client_of_user, client_ids = data.client_of_user, data.client_ids
    if client_of_user is not None:
        held, client_of_user = renumbered(client_of_user[stay])
        client_ids = None if client_ids is None else client_ids[held]
    return replace(
        data,
        users=new_user[data.users[rows]],
        items=items,
        user_ids=data.user_ids[stay],
        item_ids=data.item_ids[used],
        times=None if data.times is None else data.times[rows],
        titles=None if data.titles is None else data.titles[used],
        client_of_user=client_of_user,
        client_ids=client_ids,
        part=None if data.part is None else data.part[rows],
        rated_low=low,
    )


def replicate(data: Interactions, copies: int) -> Interactions:
    """Every user ``copies`` times, the copies named ``ID#2``, ``ID#3``, ...; for questions of scale, not of quality."""
    if copies == 1:
        return data
    if data.client_of_user is not None:
        raise BadInput(f"{data.name} has clients with several users; copies are made of users that are clients")
    ids = np.array(
        [str(user) if copy == 0 else f"{user}#{copy + 1}" for copy in range(copies) for user in data.user_ids]
    )
    if len(np.unique(ids)) < len(ids):
        raise BadInput(f"{data.name} has user ids that end like those of copies (#2); leave --copies out")
    return replace(
        data,
        users=(np.tile(data.users, copies) + np.repeat(np.arange(copies) * data.n_users, len(data))).astype(np.int32),
        items=np.tile(data.items, copies),
        user_ids=ids,
        times=None if data.times is None else np.tile(data.times, copies),
        part=None if data.part is None else np.tile(data.part, copies),
        rated_low=None if data.rated_low is None else data.rated_low.take(np.tile(np.arange(data.n_users), copies)),
    ).with_notes(f"every user {copies} times")
