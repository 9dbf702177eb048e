"""Files without a known header, read by position: what shows that the first line is a header all the same."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from fedrec.data.readers.faults import SHARE, Faults

READ = "no header: the first column is the user, the second the item"
ADVICE = (
    "say which columns are which with --columns user=NAME,item=NAME "
    "(if it is none, put a line 'user,item,...' above it)"
)
MISSING = ("", "nan", "na", "n/a", "null", "none", "nil", "-", "?", "inf", "-inf")
"""Words for a cell that holds nothing: such a row is a bad row, not a header."""


def refuse_header(columns: Mapping[str, pa.ChunkedArray], faults: Faults, bad: Mapping[str, NDArray[np.bool_]]) -> None:
    """Count a first line that is a header among the faults; ``bad``: rows whose rating or time cannot be read."""
    named = [what for what, rows in bad.items() if len(rows) and rows[0] and _names(columns[what], rows)]
    if named or (len(columns) == 2 and _stands_out(columns)):
        first = np.arange(faults.rows) == 0
        faults.add(first, lambda row: f"looks like a header; {ADVICE}", fatal=True)


def _names(column: pa.ChunkedArray, bad: NDArray[np.bool_]) -> bool:
    """Whether the first cell, which is no number, names the column: it says something, and is not as bad as all."""
    first = (column[0].as_py() or "").strip().lower()
    return first not in MISSING and (not _has_digit(first) or bad.mean() <= SHARE)


def _stands_out(columns: Mapping[str, pa.ChunkedArray]) -> bool:
    """Whether the first cells never come again, and one has no digit where all others below it have some."""
    digits: list[bool] = []
    for column in columns.values():
        first = column[0].as_py() or ""
        if len(column) < 2 or not first.strip() or _has_digit(first) or pc.sum(pc.equal(column, first)).as_py() > 1:
            return False
        found = pc.match_substring_regex(column.slice(1), "[0-9]")
        digits.append(pc.mean(pc.cast(found, pa.float64())).as_py() >= 1 - SHARE)
    return any(digits)


def _has_digit(text: str) -> bool:
    return any(sign.isdigit() for sign in text)
