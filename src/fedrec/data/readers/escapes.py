"""Quotes inside quoted cells that have a backslash before them (Spark, MySQL) in the place of a second quote."""

from __future__ import annotations

import csv
import io
import re
from collections import Counter


def doubled(data: bytes, delimiter: str) -> bytes:
    r"""The table with such quotes written twice, if more of its rows are whole when it is read so; else itself.

    >>> doubled(rb'1,"a \"b\", c"', ",")
    b'1,"a ""b"", c"'
    >>> doubled(rb'1,"C:\",2', ",")
    b'1,"C:\\",2'
    """
    if b"\\" not in data or b'\\"' not in data:
        return data
    if _whole_rows(data, delimiter, "\\") <= _whole_rows(data, delimiter, None):
        return data
    return re.sub(rb'\\(["\\])', lambda found: b'""' if found[1] == b'"' else found[1], data)


def _whole_rows(data: bytes, delimiter: str, escape: str | None) -> int:
    """How many rows have the usual number of cells, with nothing behind a closing quote."""
    text = io.TextIOWrapper(io.BytesIO(data), encoding="utf-8", newline="")
    reader = csv.reader(text, delimiter=delimiter, doublequote=escape is None, escapechar=escape, strict=True)
    counts = Counter[int]()
    while True:
        try:
            cells = next(reader, None)
        except csv.Error:
            continue
        if cells is None:
            return max(counts.values(), default=0)
        if len(cells) > 1:
            counts[len(cells)] += 1
