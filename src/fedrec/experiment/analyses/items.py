"""Item features of FedDAE's encoders in the plane (its Figure 3), out of a finished run."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fedrec import keyed
from fedrec.core.method import Keys
from fedrec.errors import BadInput
from fedrec.experiment.open import opened
from fedrec.experiment.prepare import Prepared
from fedrec.experiment.recommend import Recommender
from fedrec.runs.known import known_of


@dataclass(frozen=True)
class ItemMaps:
    """One user's item features in the plane, by what of the encoders they are made of."""

    user: str
    points: dict[str, NDArray[np.float64]]  # [items, 2]
    interacted: NDArray[np.bool_]  # [items] whether the user trained on them
    weights: tuple[float, float]
    """The gate's weights of the global and of the local encoder."""
    apart: dict[str, float]
    """How far the user's items stand apart from the others (silhouette of the features, not of the map)."""


def mapped_run(run: Path) -> Prepared:
    """A finished run of a method whose items can be drawn: FedDAE (encoders) or FedCIA (clients' tables)."""
    prepared = opened(run).prepared
    if prepared.method.name not in ("feddae", "fedcia"):
        raise BadInput(f"{run} is a run of {prepared.method.name}; items are drawn of a run of feddae or fedcia")
    return prepared


def item_maps(prepared: Prepared, users: Sequence[str] = (), count: int = 3) -> Iterator[ItemMaps]:
    """Maps of some users of a FedDAE run, one after the other; random ones where none is named."""
    from fedrec.maths.item_map import apartness, combinations, item_map

    method: Any = prepared.method
    seed, names = prepared.settings.seed, prepared.task.data.user_ids
    if not users:
        some = keyed.sample(keyed.stream(seed, "shown users"), len(names), min(count, len(names)))
        users = [str(name) for name in names[some]]
    block_of_all = prepared.people.block
    places = Recommender(known_of(prepared.task, prepared.people), prepared.runtime).positions(users)
    common = None
    for user, place in zip(users, places, strict=True):
        client = block_of_all.client_of_user[place]
        private, download, block = prepared.runtime.at_home(np.array([client]))
        row = int(place - block_of_all.user_start[client])
        shared, own, weights = method.encoders(private, download, block, row, Keys(seed, 0))
        interacted = np.zeros(block.n_items, bool)
        interacted[block.train[row]] = True
        views = combinations(shared, own, weights)
        common = common if common is not None else item_map(shared, seed=seed)  # the same for every user
        yield ItemMaps(
            user,
            {name: common if name == "global" else item_map(view, seed=seed) for name, view in views.items()},
            interacted,
            (float(weights[0]), float(weights[1])),
            {name: apartness(view, interacted) for name, view in views.items()},
        )
