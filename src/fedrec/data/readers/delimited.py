"""CSV, TSV and blank-separated files, with or without a header."""

from __future__ import annotations

from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from fedrec.data.readers import columns
from fedrec.data.readers.rows import Rows
from fedrec.data.readers.table import Table, contents, moments, numbers
from fedrec.errors import BadInput

if TYPE_CHECKING:
    import pyarrow as pa

HEAD = 1 << 16
"""Bytes that are looked at to tell what a file is."""
DELIMITERS = ("\t", ",", ";", " ")
EARLIEST_TIME = 10**8
"""A third column of whole numbers that are all above this is a time (1973), not a rating."""


def sniff(first_line: str) -> str:
    """The delimiter of a file, from its first line.

    >>> sniff("1,2,3"), sniff("1 2 3"), sniff("1::2::3")
    (',', ' ', '::')
    """
    if "::" in first_line:
        return "::"
    return next((mark for mark in DELIMITERS if mark in first_line.strip()), ",")


def first_line(path: Path) -> str:
    """The first line that is not empty."""
    return contents(path, HEAD).lstrip().split(b"\n", 1)[0].decode("utf-8", "replace").rstrip("\r")


def read(path: Path, *, given: bool = True, cut_end: bool = False) -> Rows:
    """Rows of a delimited file.

    ``given``: a person's own file (exact repeats are mistakes). ``cut_end``: leave out a last line cut off.
    """
    table = Table.open(path, sniff(first_line(path)))
    cells = next(table.lines())[1]
    header = columns.is_header(cells)
    names = columns.by_name(cells, path) if header else columns.by_position(len(cells), path)
    return from_table(table, names, int(header), given=given, cut_end=cut_end)


def from_table(
    table: Table, names: list[str], header_lines: int, *, given: bool = False, cut_end: bool = False
) -> Rows:
    """Rows of an opened file whose columns have these names."""
    notes: list[str] = []
    if cut_end:
        whole = table.without_torn_end(len(names))
        if whole is not table:
            notes.append(f"{table.path.name}: left out a last line that breaks off")
        table = whole
    data = table.columns(names, header_lines)
    place = partial(table.place, header_lines=header_lines)
    ratings: NDArray[np.float64] | None = None
    times: NDArray[np.int64] | NDArray[np.float64] | None = None
    if "rating" in names:
        ratings, bad = numbers(data["rating"])
        if bad is not None:
            text = data["rating"][bad].as_py()
            header = "" if header_lines or bad else "; a header names user, item, rating, timestamp"
            raise BadInput(f"{place(bad)}: rating {text!r} is not a number{header}")
        if not header_lines and len(names) == 3 and _are_times(ratings):
            times, ratings = ratings.astype(np.int64), None
            notes.append(f"{table.path.name}: the third column is read as a time")
    if "time" in names:
        times, bad = moments(data["time"])
        if bad is not None:
            raise BadInput(f"{place(bad)}: time {data['time'][bad].as_py()!r} is neither a number nor an ISO date")
    return Rows(
        users=data["user"],
        items=data["item"],
        ratings=ratings,
        times=times,
        clients=data["client"] if "client" in names else None,
        titles=titles_of(data["item"], data["title"]) if "title" in names else None,
        place=place,
        given=given,
        notes=tuple(notes),
    )


def titles_of(items: pa.ChunkedArray, titles: pa.ChunkedArray) -> dict[str, str]:
    """Item id to title, out of two columns."""
    return dict(zip(items.to_pylist(), titles.to_pylist(), strict=True))


def _are_times(values: np.ndarray) -> bool:
    return bool(len(values)) and bool((values > EARLIEST_TIME).all()) and bool((values % 1 == 0).all())
