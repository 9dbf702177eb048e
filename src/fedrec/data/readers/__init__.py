"""Readers, one file per format (publishers' plain tables in one); :func:`read` finds the right one for a path."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial
from pathlib import Path

from fedrec.data import limits
from fedrec.data.readers import (
    delimited,
    movielens,
    parquet_table,
    publishers,
    ready_split,
    recbole,
    sequences,
    yelp,
)
from fedrec.data.readers.recognise import KNOWN_FILES, format_of
from fedrec.data.readers.rows import Rows
from fedrec.errors import BadInput

READERS: dict[str, Callable[..., Rows]] = {
    "recbole": recbole.read,
    "movielens-tabs": movielens.read_tabs,
    "movielens-colons": movielens.read_colons,
    "movielens-titled": movielens.read_titled,
    "delimited": delimited.read,
    "published": partial(delimited.read, given=False, cut_end=True),
    "parquet": parquet_table.read,
    "sequences": sequences.read,
    "ready-split": ready_split.read,
    "lastfm": publishers.lastfm,
    "book-crossing": publishers.book_crossing,
    "foursquare": publishers.foursquare,
    "yelp": yelp.read,
    "tenrec": publishers.tenrec,
    "microlens": publishers.microlens,
}
"""Readers by name. 'published': a publisher's delimited file; repeats merge, a torn last line is left out."""

DATA_ENDINGS = {".csv", ".tsv", ".txt", ".dat", ".data", ".gz", ".zip"}
NAMED = ("delimited", "recbole", "parquet")
"""Readers of files that name their columns, so that a person can say which is which."""


def read(path: Path, columns: Mapping[str, str] | None = None) -> Rows:
    """Rows of a person's own file or folder in any known format; ``columns``: meaning to column name."""
    if not path.exists():
        raise BadInput(f"no such file or folder: {path}")
    if path.is_dir() and not ready_split.part_files(path):
        path = _only_table(path)
    form = format_of(path, columns) if path.is_file() else "ready-split" if ready_split.part_files(path) else "parquet"
    if not columns:
        return READERS[form](path)
    if form not in NAMED:
        raise BadInput(f"{path} names no columns, so --columns has nothing to choose from")
    return READERS[form](path, chosen=columns)


def _only_table(folder: Path) -> Path:
    """The file of interactions in a folder, where there is no doubt which it is; itself, of a table in parts."""
    for pattern, _ in KNOWN_FILES:
        found = sorted(folder.glob(pattern))
        if len(found) == 1:
            return found[0]
    files = sorted(path for path in folder.iterdir() if path.is_file() and path.suffix in DATA_ENDINGS)
    likely = [path for path in files if path.name.startswith(("ratings", "interactions"))] or files
    if len(likely) == 1:
        return likely[0]
    if not files and parquet_table.part_files(folder):
        return folder
    names = limits.names([path.name for path in files]) or "no data file"
    raise BadInput(f"{folder} holds {names}; name one file, or make it a ready split (train, valid, test)")
