"""Who holds whose data: one client per user, K organisations, or what the data says."""

from __future__ import annotations

from dataclasses import replace
from typing import Literal

import numpy as np

from fedrec import keyed
from fedrec.data.interactions import Interactions
from fedrec.errors import BadInput

Spread = Literal["random", "blocks"]


def partition(
    data: Interactions, how: Literal["user", "given"] | int | None, seed: int = 0, spread: Spread = "random"
) -> Interactions:
    """The same interactions with users put into clients.

    ``how`` is "user" or None (each user a client), "given" (the data's own clients), or a number K: each user goes to
    one of K groups. At random they are of nearly equal size, in an order keyed by seed and user id, so the groups do
    not depend on the order of rows or users. In blocks, neighbours in the order of users, which is that of their ids,
    share a group, and the last one takes what is left over. FedCIA's partitions are of this kind; where a source
    numbers users as they appear in a list of items, neighbours have much in common.
    """
    if how is None or how == "user":
        return replace(data, client_of_user=None, client_ids=None)
    if how == "given":
        if data.client_of_user is None:
            raise BadInput(f"{data.name} has no client column; use one client per user or a number of groups")
        return data
    if isinstance(how, bool) or not isinstance(how, int):
        raise BadInput(f"unknown partition {how!r}; use 'user', 'given' or a number of groups")
    if not 1 <= how <= data.n_users:
        raise BadInput(f"{how} client groups for {data.n_users} users; use 1 to {data.n_users}")
    if spread == "blocks":
        group = np.minimum(np.arange(data.n_users) // (data.n_users // how), how - 1)
        note = f"users put into {how} client groups, neighbours in the order of ids together"
    else:
        drawn = keyed.streams(keyed.stream(seed, "partition"), keyed.keys_of(data.user_ids.tolist()))
        place = np.empty(data.n_users, np.int64)
        place[np.lexsort((data.user_ids, drawn))] = np.arange(data.n_users)
        group = place % how
        note = f"users put into {how} client groups (seed {seed})"
    return replace(
        data,
        client_of_user=group.astype(np.int32),
        client_ids=np.array([str(group) for group in range(how)], dtype=np.str_),
    ).with_notes(note)
