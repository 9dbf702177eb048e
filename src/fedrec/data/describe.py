"""What a data set looks like, and which there are."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime, timedelta
from pathlib import Path

import numpy as np

from fedrec.data.interactions import Interactions
from fedrec.data.load import default_data_dir
from fedrec.data.sources import SOURCES, Source
from fedrec.data.understood import ORDER_ONLY, unit_of


@dataclass(frozen=True)
class Summary:
    """A data set in numbers."""

    name: str
    users: int
    items: int
    interactions: int
    density: float
    """Interactions per user-item pair, 0 to 1."""
    least_per_user: int
    median_per_user: float
    most_per_user: int
    first_time: str | None
    """First day of the data, or None where there are no moments."""
    last_time: str | None
    ordered: bool
    """Whether a user's interactions have an order in time."""
    titles: bool
    clients: int
    """Data holders: the users themselves unless the data says otherwise."""
    parts: tuple[int, ...] | None
    """Interactions in train, valid and test of a ready split."""
    notes: tuple[str, ...]


def describe(data: Interactions) -> Summary:
    """The numbers of a data set."""
    per_user = np.bincount(data.users, minlength=data.n_users)
    first, last = _days(data)
    return Summary(
        name=data.name,
        users=data.n_users,
        items=data.n_items,
        interactions=len(data),
        density=len(data) / (data.n_users * data.n_items),
        least_per_user=int(per_user.min()),
        median_per_user=float(np.median(per_user)),
        most_per_user=int(per_user.max()),
        first_time=first,
        last_time=last,
        ordered=data.times is not None,
        titles=data.titles is not None,
        clients=data.n_users if data.client_of_user is None else len(np.unique(data.client_of_user)),
        parts=None if data.part is None else tuple(np.bincount(data.part, minlength=3).tolist()),
        notes=data.notes,
    )


def _days(data: Interactions) -> tuple[str | None, str | None]:
    if data.times is None or int(data.times.max()) < ORDER_ONLY:
        return None, None
    seconds = unit_of(data.times)
    first, last = (_day(int(end) // seconds) for end in (data.times.min(), data.times.max()))
    return first, last


def _day(seconds: int) -> str | None:
    try:
        return (datetime(1970, 1, 1) + timedelta(seconds=seconds)).date().isoformat()
    except OverflowError:
        return None


def said_of(data: Interactions) -> list[str]:
    """What was understood of the data and what was done to it, a line each."""
    lines = [] if data.understood is None else data.understood.lines()
    return lines + [note for note in data.notes if note not in lines]


@dataclass(frozen=True)
class Listed:
    """One line of ``fedrec data list``."""

    name: str
    title: str
    papers: tuple[str, ...]
    origin: str
    """Where it would come from."""
    present: bool
    """Whether it can be loaded now."""
    folder: Path | None
    """Where it lies or would lie; None for a world made by code."""


MADE_BY_CODE = (
    ("demo", "Synthetic: a first run of seconds, with titles"),
    ("planted", "Synthetic: a world with a known answer"),
    ("scale:users=...", "Synthetic: any users, items, interactions"),
)


def listing(data_dir: Path | None = None) -> list[Listed]:
    """All data sets by name, the synthetic worlds first."""
    folder = default_data_dir() if data_dir is None else Path(data_dir)
    worlds = [Listed(name, title, (), "made by code", True, None) for name, title in MADE_BY_CODE]
    known = [
        Listed(s.name, s.title, s.papers, origin(s), s.find(folder / s.name) is not None, folder / s.name)
        for s in SOURCES.values()
    ]
    return worlds + known


def origin(source: Source) -> str:
    """Where ``fedrec data get`` would look, in a few words."""
    if not source.remotes:
        return f"by hand from {source.page}"
    host = source.remotes[0].url.split("/")[2]
    return f"{host}, else the package {source.wheel.requirement}" if source.wheel else host
