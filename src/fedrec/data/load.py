"""One door for all data: a registry name, a synthetic world, a file, a folder, a DataFrame."""

from __future__ import annotations

import math
import os
from collections.abc import Mapping
from dataclasses import replace
from numbers import Real
from pathlib import Path
from typing import Any

from fedrec.data import checksums, filters, limits
from fedrec.data.interactions import Interactions
from fedrec.data.partition import partition
from fedrec.data.sources import SOURCES, Source
from fedrec.data.synthetic import WORLDS, world
from fedrec.errors import BadInput, nearest

IN_MEMORY = "(a table in memory)"
"""The name of data that was given as a table, not as a file."""


def default_data_dir() -> Path:
    """``$FEDREC_DATA``, else the user's cache folder."""
    given = os.environ.get("FEDREC_DATA")
    if given:
        return Path(given)
    import platformdirs

    return Path(platformdirs.user_cache_dir("fedrec", appauthor=False))


def load(
    name: str | Path | Any,
    data_dir: Path | None = None,
    *,
    min_interactions: int | None = None,
    paper: str | None = None,
    client_groups: int | None = None,
    seed: int = 0,
    columns: Mapping[str, str] | str | None = None,
    min_rating: float | None = None,
) -> Interactions:
    """Interactions by name.

    ``name``: a registry name ("ml-100k"), a synthetic world ("demo", "planted", "scale:users=1000"), a path
    to a file or folder, a folder below the data directory ("fedcia/ml100k_100"), or a table in memory (pandas,
    polars, pyarrow).
    ``min_interactions``: users with fewer are left out; by default the rule of ``paper`` for this data set,
    else the registry's. ``client_groups``: put users into this many clients; by default the data's own
    clients, else one client per user. ``seed`` makes the synthetic world and the groups.
    ``columns``: which column of a file or table means what ("user=CustomerID,item=SKU", or a mapping), where its
    name does not say so. ``min_rating``: rows with a lower rating are no interactions; by default those of 0 or less.
    """
    try:
        data, least = _found(name, data_dir, columns, min_rating, paper, seed)
        least = least if min_interactions is None else min_interactions
        if least is not None:
            data = _filtered(data, least)
        if client_groups is not None:
            data = partition(data, client_groups, seed)
    except BadInput as problem:
        said = limits.short(problem)
        if said is problem:
            raise
        raise said from problem
    return data


def _found(
    name: str | Path | Any,
    data_dir: Path | None,
    columns: Mapping[str, str] | str | None,
    min_rating: float | None,
    paper: str | None,
    seed: int,
) -> tuple[Interactions, int | None]:
    """The data, and the filter that goes with it."""
    chosen: dict[str, str] = {}
    if columns is not None:
        from fedrec.data.readers.columns import given

        chosen = given(columns)
    _refuse_no_number(min_rating)
    if not isinstance(name, str | Path):
        from fedrec.data.assemble import assemble
        from fedrec.data.readers import typed

        if not typed.is_frame(name):
            raise BadInput(f"data of type {type(name).__name__} cannot be used; give a name, a file or a DataFrame")
        return assemble(typed.read_frame(name, chosen=chosen), "frame", min_rating), None
    folder = default_data_dir() if data_dir is None else Path(data_dir)
    name = str(name)
    if not name.strip():
        raise BadInput("no data is named; give the name of a data set, a file or a folder ('.' is the current one)")
    if name == IN_MEMORY:
        raise BadInput("the data was a table in memory, which is gone; runs on a file can be resumed and updated")
    world_or_known = name.partition(":")[0] in WORLDS or name in SOURCES
    if chosen and world_or_known:
        raise BadInput(f"{name} has known columns; --columns is for files of your own")
    if name.partition(":")[0] in WORLDS:
        if min_rating is not None:
            raise BadInput(f"{name} has no ratings, so a least rating says nothing; leave --min-rating out")
        return world(name, seed), None
    if name in SOURCES:
        source = SOURCES[name]
        return _published(source, folder, min_rating), source.filter_for(paper)
    return _path(name, folder, chosen, min_rating), None


def _refuse_no_number(min_rating: object) -> None:
    """Refuse a least rating that is text or no finite number."""
    if min_rating is None:
        return
    if isinstance(min_rating, bool) or not isinstance(min_rating, Real) or not math.isfinite(min_rating):
        raise BadInput(f"min_rating={limits.brief(min_rating)} is not a number; give one, such as min_rating=4")


def _filtered(data: Interactions, least: int) -> Interactions:
    left = filters.at_least(data, least)
    if left is data or left.understood is None:
        return left
    said = left.notes[-1]
    return replace(left, understood=replace(left.understood, filters=(*left.understood.filters, said)))


PLACE = 100
"""Characters of a folder in an error: what to do there must not be shortened away."""


def _published(source: Source, data_dir: Path, min_rating: float | None = None) -> Interactions:
    from fedrec.data.assemble import assemble
    from fedrec.data.readers import READERS

    folder = data_dir / source.name
    found = source.find(folder)
    if found is None:
        wanted = " or ".join(layout.main for layout in source.layouts)
        raise BadInput(
            f"{source.name} is not there; run 'fedrec data get {source.name}', or place {wanted} "
            f"(from {source.page}) in {limits.ends(folder, PLACE)}"
        )
    path, layout = found
    checksums.verify(data_dir, [path, *(folder / name for name in layout.beside)])
    return assemble(READERS[layout.reader](path), source.name, min_rating)


def _path(name: str, data_dir: Path, columns: Mapping[str, str], min_rating: float | None) -> Interactions:
    from fedrec.data import readers
    from fedrec.data.assemble import assemble

    given = Path(name).expanduser()
    below = data_dir / name
    try:
        if given.exists():
            return assemble(readers.read(given, columns), given.resolve().name.split(".")[0] or name, min_rating)
        if not given.is_absolute() and below.exists():
            return assemble(readers.read(below, columns), name, min_rating)
    except (OSError, ValueError) as problem:  # a name that is too long, or holds a NUL
        reason = problem.strerror if isinstance(problem, OSError) else problem
        raise BadInput(f"cannot read {limits.brief(name, 80)}: {reason}") from problem
    if "/" in name or os.sep in name or given.suffix:
        raise BadInput(f"no such file or folder: {name} (nor {below}); `fedrec data list` shows the known data sets")
    raise BadInput(f"unknown data {name!r}; {nearest(name, [*SOURCES, 'demo', 'planted'])}; or give a file or folder")
