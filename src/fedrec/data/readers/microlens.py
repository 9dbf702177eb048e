"""MicroLens-100K: pairs of user and video with a time in milliseconds, and a file of titles."""

from __future__ import annotations

from pathlib import Path

from fedrec.data.readers import columns, delimited
from fedrec.data.readers.rows import Rows
from fedrec.data.readers.table import Table

TITLE_FILES = ("MicroLens-100k_title_en.csv", "MicroLens-100k_title.csv", "MicroLens-100k_title_cn.csv")


def read(path: Path) -> Rows:
    """``MicroLens-100k_pairs.csv`` (``user,item,timestamp``) with the first file of titles beside it."""
    table = Table.open(path, ",")
    header = table.first()
    names = columns.by_name(header, path) if columns.is_header(header) else ["user", "item", "time"]
    rows = delimited.from_table(table, names, int(columns.is_header(header)))
    beside = next((path.with_name(name) for name in TITLE_FILES if path.with_name(name).is_file()), None)
    return rows.with_titles(None if beside is None else titles(beside))


def titles(path: Path) -> dict[str, str]:
    """Video id to title; a title may hold commas that the publisher left unquoted."""
    return {cells[0]: ",".join(cells[1:]).strip() for _, cells in Table.open(path, ",").lines() if len(cells) > 1}
