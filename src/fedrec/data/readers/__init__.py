"""Readers, one file per format (publishers' plain tables in one); :func:`read` finds the right one for a path."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial
from pathlib import Path

from fedrec.data.readers import (
    delimited,
    folders,
    movielens,
    parquet_table,
    publishers,
    ready_split,
    recbole,
    sequences,
    yelp,
)
from fedrec.data.readers.recognise import format_of
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

NAMED = ("delimited", "recbole", "parquet", "ready-split")
"""Readers of files that name their columns, so that a person can say which is which."""


def read(path: Path, columns: Mapping[str, str] | None = None) -> Rows:
    """Rows of a person's own file or folder in any known format; ``columns``: meaning to column name."""
    if not path.exists():
        raise BadInput(f"no such file or folder: {path}")
    if path.is_dir() and not ready_split.part_files(path):
        path = folders.only_table(path)
    form = format_of(path, columns) if path.is_file() else "ready-split" if ready_split.part_files(path) else "parquet"
    if not columns:
        return READERS[form](path)
    if form not in NAMED:
        raise BadInput(f"{path} has no column names, so --columns has nothing to choose from")
    return READERS[form](path, chosen=columns)
