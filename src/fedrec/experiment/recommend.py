"""Items for one user, out of a finished run: the data's own ids and titles, nothing the user has."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from fedrec.errors import BadInput, nearest
from fedrec.experiment.prepare import Prepared
from fedrec.runs.recommendations import Recommendation, best_items


@dataclass(frozen=True)
class Place:
    """Where a user is found."""

    index: int
    """Among the users of the data."""
    client: int
    row: int
    """Among the users of that client."""


def place(prepared: Prepared, user: str | int) -> Place:
    """Where the user of that id is."""
    data, people = prepared.task.data, prepared.people
    found = np.flatnonzero(data.user_ids == str(user))
    if not len(found):
        hint = nearest(str(user), [str(name) for name in data.user_ids]) if data.n_users < 100_000 else ""
        hint = hint if hint.startswith("did you") else f"its {data.n_users} users start with {str(data.user_ids[0])!r}"
        raise BadInput(f"{data.name} has no user {str(user)!r}; {hint}")
    position = int(np.flatnonzero(people.users == found[0])[0])
    client = int(np.searchsorted(people.block.user_start, position, side="right")) - 1
    return Place(int(found[0]), client, position - int(people.block.user_start[client]))


def recommend(prepared: Prepared, user: str | int, k: int = 10) -> list[Recommendation]:
    """The ``k`` best items for a user, by the run's selected model."""
    data, found = prepared.task.data, place(prepared, user)
    scores = prepared.runtime.scores(np.array([found.client]))[found.row]
    return best_items(scores, data.items[data.users == found.index], data.item_ids, data.titles, k)
