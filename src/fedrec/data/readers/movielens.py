"""MovieLens as its publisher has it: ``u.data`` (tabs) and ``ratings.dat`` (``::``), titles in latin-1."""

from __future__ import annotations

from pathlib import Path

from fedrec.data.readers import delimited
from fedrec.data.readers.rows import Rows
from fedrec.data.readers.table import Table
from fedrec.errors import BadInput

NAMES = ["user", "item", "rating", "time"]


def read_tabs(path: Path) -> Rows:
    """``u.data`` of MovieLens-100K, with titles from ``u.item`` beside it."""
    rows = delimited.from_table(Table.open(path, "\t", quoted=False), NAMES, 0)
    beside = path.with_name("u.item")
    return rows.with_titles(titles(beside, "|") if beside.is_file() else None)


def read_colons(path: Path) -> Rows:
    """``ratings.dat`` of MovieLens-1M (``user::item::rating::time``), with titles from ``movies.dat``."""
    rows = delimited.from_table(Table.open(path, "::"), NAMES, 0)
    beside = path.with_name("movies.dat")
    return rows.with_titles(titles(beside, "::") if beside.is_file() else None)


def titles(path: Path, delimiter: str) -> dict[str, str]:
    """Movie id to title: the first two cells of a line."""
    found: dict[str, str] = {}
    for line, cells in Table.open(path, delimiter, quoted=False, encoding="latin-1").lines():
        if len(cells) < 2:
            raise BadInput(f"{path} line {line}: expected 'id{delimiter}title{delimiter}...'")
        found[cells[0]] = cells[1]
    return found
