"""HetRec 2011 LastFM-2K: ``user_artists.dat`` (user, artist, play count) and ``artists.dat`` (names)."""

from __future__ import annotations

from pathlib import Path

from fedrec.data.readers import columns, delimited
from fedrec.data.readers.rows import Rows
from fedrec.data.readers.table import Table
from fedrec.errors import BadInput


def read(path: Path) -> Rows:
    """Any artist listened to is an interaction; the header line may be missing."""
    table = Table.open(path, "\t", quoted=False)
    header = int(columns.is_header(table.first()))
    rows = delimited.from_table(table, ["user", "item", "rating"], header)
    beside = path.with_name("artists.dat")
    return rows.with_titles(names(beside) if beside.is_file() else None)


def names(path: Path) -> dict[str, str]:
    """Artist id to name."""
    lines = Table.open(path, "\t", quoted=False).lines()
    found: dict[str, str] = {}
    for line, cells in lines:
        if len(cells) < 2:
            raise BadInput(f"{path} line {line}: expected 'id<tab>name<tab>...'")
        found[cells[0]] = cells[1]
    return found
