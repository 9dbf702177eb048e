"""A larger population of the same kind: every user several times."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from fedrec.data.interactions import Interactions
from fedrec.errors import BadInput


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
    ).with_notes(f"every user {copies} times")
