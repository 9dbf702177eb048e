"""Items for one user, out of a finished run: the data's own ids and titles, nothing the user has."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from fedrec.data.ragged import segments
from fedrec.errors import BadInput, nearest
from fedrec.runs.recommendations import Recommendation, best_items

if TYPE_CHECKING:
    from fedrec.running import Prepared


def recommend(prepared: Prepared, user: str | int, k: int = 10) -> list[Recommendation]:
    """The ``k`` best items for a user, by the run's selected model."""
    data, people = prepared.task.data, prepared.people
    found = np.flatnonzero(data.user_ids == str(user))
    if not len(found):
        hint = nearest(str(user), [str(name) for name in data.user_ids]) if data.n_users < 100_000 else ""
        hint = hint if hint.startswith("did you") else f"its {data.n_users} users start with {str(data.user_ids[0])!r}"
        raise BadInput(f"{data.name} has no user {str(user)!r}; {hint}")
    position = int(np.flatnonzero(people.users == found[0])[0])
    client = int(np.searchsorted(people.block.user_start, position, side="right")) - 1
    rows = segments(people.block.user_start, np.array([client]))
    scores = prepared.runtime.scores(np.array([client]))[position - rows[0]]
    return best_items(scores, data.items[data.users == found[0]], data.item_ids, data.titles, k)
