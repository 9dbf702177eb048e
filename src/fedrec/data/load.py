"""One door for all data: a registry name, a synthetic world, a file, a folder."""

from __future__ import annotations

import os
from pathlib import Path

from fedrec.data import filters
from fedrec.data.interactions import Interactions
from fedrec.data.partition import partition
from fedrec.data.sources import SOURCES, Source
from fedrec.errors import BadInput, nearest

WORLDS = ("demo", "planted", "scale")


def default_data_dir() -> Path:
    """``$FEDREC_DATA``, else the user's cache folder."""
    given = os.environ.get("FEDREC_DATA")
    if given:
        return Path(given)
    import platformdirs

    return Path(platformdirs.user_cache_dir("fedrec", appauthor=False))


def load(
    name: str,
    data_dir: Path | None = None,
    *,
    min_interactions: int | None = None,
    paper: str | None = None,
    client_groups: int | None = None,
    seed: int = 0,
) -> Interactions:
    """Interactions by name.

    ``name``: a registry name ("ml-100k"), a synthetic world ("demo", "planted", "scale:users=1000"), a path
    to a file or folder, or a folder below the data directory ("fedcia/ml100k_100").
    ``min_interactions``: users with fewer are left out; by default the rule of ``paper`` for this data set,
    else the registry's. ``client_groups``: put users into this many clients; by default the data's own
    clients, else one client per user. ``seed`` makes the synthetic world and the groups.
    """
    folder = default_data_dir() if data_dir is None else Path(data_dir)
    least = min_interactions
    if name.partition(":")[0] in WORLDS:
        from fedrec.data.synthetic import world

        data = world(name, seed)
    elif name in SOURCES:
        source = SOURCES[name]
        data = _published(source, folder)
        least = source.filter_for(paper) if min_interactions is None else min_interactions
    else:
        data = _path(name, folder)
    if least is not None:
        data = filters.at_least(data, least)
    if client_groups is not None:
        data = partition(data, client_groups, seed)
    return data


def _published(source: Source, data_dir: Path) -> Interactions:
    from fedrec.data.assemble import assemble
    from fedrec.data.readers import READERS

    folder = data_dir / source.name
    found = source.find(folder)
    if found is None:
        wanted = " or ".join(layout.main for layout in source.layouts)
        raise BadInput(
            f"{source.name} is not in {data_dir}; run 'fedrec data get {source.name}', or place "
            f"{wanted} in {folder} (from {source.page})"
        )
    path, layout = found
    return assemble(READERS[layout.reader](path), source.name)


def _path(name: str, data_dir: Path) -> Interactions:
    from fedrec.data import readers
    from fedrec.data.assemble import assemble

    given = Path(name).expanduser()
    below = data_dir / name
    if given.exists():
        return assemble(readers.read(given), given.resolve().name.split(".")[0] or name)
    if not given.is_absolute() and below.exists():
        return assemble(readers.read(below), name)
    if "/" in name or os.sep in name or given.suffix:
        raise BadInput(f"no such file or folder: {name} (nor {below}); known data sets: {', '.join(sorted(SOURCES))}")
    raise BadInput(f"unknown data {name!r}; {nearest(name, [*SOURCES, 'demo', 'planted'])}; or give a file or folder")
