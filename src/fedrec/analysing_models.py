"""Looks into the models of finished runs: FedDAE's encoders (its Figure 3), two views (Fed3CR, Figures 6 and 7)."""

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
from fedrec.recommending import place
from fedrec.running import Prepared, opened

CHUNK = 64
"""Clients whose tables are looked at together."""


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


def encoder_run(run: Path) -> Prepared:
    """A finished run of FedDAE."""
    from fedrec.methods.vae.feddae import FedDae

    prepared = opened(run).prepared
    if not isinstance(prepared.method, FedDae):
        raise BadInput(
            f"{run} is a run of {prepared.method.name}; item features of encoders are those of a run of feddae"
        )
    return prepared


def item_maps(prepared: Prepared, users: Sequence[str] = (), count: int = 3) -> Iterator[ItemMaps]:
    """Maps of some users of a FedDAE run, one after the other; random ones where none is named."""
    from fedrec.maths.item_map import apartness, combinations, item_map

    method: Any = prepared.method
    seed, names = prepared.settings.seed, prepared.task.data.user_ids
    if not users:
        some = keyed.sample(keyed.stream(seed, "shown users"), len(names), min(count, len(names)))
        users = [str(name) for name in names[some]]
    chosen = {user: place(prepared, user) for user in users}
    common = None
    for user, where in chosen.items():
        private, download, block = prepared.runtime.at_home(np.array([where.client]))
        shared, own, weights = method.encoders(private, download, block, where.row, Keys(seed, 0))
        interacted = np.zeros(block.n_items, bool)
        interacted[block.train[where.row]] = True
        views = combinations(shared, own, weights)
        common = common if common is not None else item_map(shared, seed=seed)  # the same for every user
        yield ItemMaps(
            user,
            {name: common if name == "global" else item_map(view, seed=seed) for name, view in views.items()},
            interacted,
            (float(weights[0]), float(weights[1])),
            {name: apartness(view, interacted) for name, view in views.items()},
        )


@dataclass(frozen=True)
class Views:
    """How a run's two views of the items agree."""

    name: str
    users: list[str]
    overlap: NDArray[np.float64]  # [users] rank-biased overlap of the two top lists
    client: str
    correlation: NDArray[np.float64]  # [d, d] of that client


def two_views(run: Path, client: str | None = None, depth: int = 50, p: float = 0.99) -> Views:
    """Agreement of the consensus and the private view for all users, their correlation on one client."""
    from fedrec.methods.two_views.reading import Reader
    from fedrec.methods.two_views.views import TwoViews

    prepared = opened(run).prepared
    method: Any = prepared.method
    if not isinstance(method, TwoViews):
        raise BadInput(
            f"{run} is a run of {method.name}, which has no two views of an item; give runs of fed3cr, fedrap"
        )
    ids = prepared.people.client_ids
    if client is not None and client not in ids:
        raise BadInput(f"{prepared.task.data.name} has no client {client!r}; its {len(ids)} start with {ids[0]!r}")
    shown = ids.index(client) if client is not None else 0
    overlaps = []
    for first in range(0, len(ids), CHUNK):
        private, download, block = prepared.runtime.at_home(np.arange(first, min(first + CHUNK, len(ids))))
        overlaps.append(Reader.of(method, private, method.model(download), block).overlap(depth, p))
    private, download, block = prepared.runtime.at_home(np.array([shown]))
    return Views(
        str(run),
        [str(name) for name in prepared.task.data.user_ids[prepared.people.users]],
        np.concatenate(overlaps),
        ids[shown],
        Reader.of(method, private, method.model(download), block).correlation(0),
    )
