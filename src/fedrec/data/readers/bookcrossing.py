"""Book-Crossing's CSV dump: semicolons, quotes, latin-1, backslash before a quote."""

from __future__ import annotations

import html
from dataclasses import replace
from pathlib import Path

from fedrec.data.readers import columns, delimited
from fedrec.data.readers.rows import Rows
from fedrec.data.readers.table import Table


def read(path: Path) -> Rows:
    """``BX-Book-Ratings.csv`` with titles from ``BX-Books.csv``.

    The publisher writes 0 for 'implicit': the reader has the book and gave no mark. That is an interaction,
    so every row counts here, whatever its rating.
    """
    table = Table.open(path, ";", encoding="latin-1", escape="\\")
    header = int(columns.is_header(table.first()))
    rows = delimited.from_table(table, ["user", "item", "rating"], header)
    implicit = 0 if rows.ratings is None else int((rows.ratings == 0).sum())
    note = f"{implicit} rows are implicit (0 in the publisher's file) and count as interactions"
    beside = path.with_name("BX-Books.csv")
    found = titles(beside) if beside.is_file() else None
    return replace(rows, ratings=None, titles=found, notes=(*rows.notes, *([note] if implicit else [])))


def titles(path: Path) -> dict[str, str]:
    """ISBN to title; the dump has HTML entities and some torn lines, which cost a title and no more."""
    found: dict[str, str] = {}
    for _, cells in Table.open(path, ";", encoding="latin-1", escape="\\").lines():
        if len(cells) > 1:
            found[cells[0]] = html.unescape(cells[1])
    return found
