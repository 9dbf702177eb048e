"""Items in the plane, out of a finished run: by FedDAE's encoders (its Figure 3), or by FedCIA's clients at the stages
of a round (its Figure 4)."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import combinations
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fedrec import keyed
from fedrec.core.messages import Float32
from fedrec.core.method import Keys
from fedrec.errors import BadInput
from fedrec.experiment.open import opened
from fedrec.experiment.prepare import Prepared
from fedrec.experiment.recommend import Recommender
from fedrec.maths import item_map as maps
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
        views = maps.combinations(shared, own, weights)
        common = common if common is not None else maps.item_map(shared, seed=seed)  # the same for every user
        yield ItemMaps(
            user,
            {name: common if name == "global" else maps.item_map(view, seed=seed) for name, view in views.items()},
            interacted,
            (float(weights[0]), float(weights[1])),
            {name: maps.apartness(view, interacted) for name, view in views.items()},
        )


@dataclass(frozen=True)
class ClientMaps:
    """Some clients' embeddings of some items in the plane, stage by stage."""

    clients: list[str]
    items: NDArray[np.int64]
    points: dict[str, NDArray[np.float64]]  # [clients, items, 2] by stage
    distance: dict[str, float]
    """How far two clients' embeddings of an item lie from one another, against their mean length."""
    agreement: dict[str, float]
    """How two clients' item similarities are correlated."""


def client_maps(prepared: Prepared, clients: int = 3, count: int = 100) -> ClientMaps:
    """Random clients and items of a FedCIA run; section 6.5's stages, the last one in both ways of aggregating."""
    seed, world = prepared.settings.seed, prepared.people.world
    for word, asked, most in (("--clients", clients, world.n_clients), ("--count", count, world.n_items)):
        if asked > most:
            raise BadInput(f"{word} {asked} is more than the run has; give at most {most}")
    shown = keyed.sample(keyed.stream(seed, "shown clients"), world.n_clients, clients)
    items = keyed.sample(keyed.stream(seed, "shown items"), world.n_items, count)
    tables = {name: np.stack(found)[:, items] for name, found in _stages(prepared, shown).items()}
    return ClientMaps(
        [str(prepared.people.client_ids[client]) for client in shown],
        items,
        {name: _map(table, seed) for name, table in tables.items()},
        {name: distance(table) for name, table in tables.items()},
        {name: agreement(table) for name, table in tables.items()},
    )


def _map(tables: Float32, seed: int) -> NDArray[np.float64]:
    """Coordinates ``[clients, items, 2]``: all clients in one map, and equal embeddings in one place (t-SNE alone would
    push them apart)."""
    distinct, place = np.unique(tables.reshape(-1, tables.shape[2]), axis=0, return_inverse=True)
    return maps.item_map(distinct, seed=seed)[place.reshape(-1)].reshape(*tables.shape[:2], 2)


def _stages(prepared: Prepared, shown: NDArray[np.int64]) -> dict[str, list[Float32]]:
    """The shown clients' tables ``[n_items, d]`` at each stage."""
    method: Any = prepared.method
    chosen = method.settings
    if chosen.parameter_free or chosen.mixed != "none" or chosen.aggregate != "similarity" or chosen.align == "none":
        raise BadInput(
            "item embeddings of clients need a run of fedcia with backbone=mf, mlp or lightgcn that aggregates "
            "similarities of models of one kind; leave mixed, aggregate and align=none out"
        )
    everyone = np.arange(prepared.people.world.n_clients)
    private, download, block = prepared.runtime.at_home(everyone)
    fresh = method.start_clients(prepared.people.world, block.take(shown), Keys(prepared.settings.seed, 0)).tables
    trained = [private.tables[client] for client in shown]
    mean = np.zeros(trained[0].shape)
    for table, size in zip(private.tables, block.sizes / block.sizes.sum(), strict=True):
        mean += size * table
    return {
        "start": list(fresh),
        "trained": trained,
        "weighted summation": [mean.astype(np.float32)] * len(shown),
        "collaborative information": method.exchange.aligned(trained, download),
    }


def distance(tables: Float32) -> float:
    """Mean distance of two clients' embeddings of the same item, divided by the mean length; tables ``[c, m, d]``.

    >>> distance(np.array([[[3.0, 0.0]], [[0.0, 4.0]]], np.float32)).__round__(3)
    1.429
    """
    apart = [np.linalg.norm(tables[a] - tables[b], axis=1).mean() for a, b in combinations(range(len(tables)), 2)]
    return float(np.mean(apart) / max(float(np.linalg.norm(tables, axis=2).mean()), 1e-30))


def agreement(tables: Float32) -> float:
    """Mean correlation of two clients' similarities ``E E'`` of different items; 0 where one has no spread."""
    upper = np.triu_indices(tables.shape[1], 1)
    found = []
    for a, b in combinations(range(len(tables)), 2):
        pair = [(tables[c].astype(np.float64) @ tables[c].T)[upper] for c in (a, b)]
        spread = pair[0].std() * pair[1].std()
        centred = (pair[0] - pair[0].mean()) @ (pair[1] - pair[1].mean()) / max(1, len(upper[0]))
        found.append(centred / spread if spread > 0 else 0.0)
    return float(np.mean(found))
