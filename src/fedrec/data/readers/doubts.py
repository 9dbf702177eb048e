"""Tables in which each user is there once, and that may be something else: users with their items, or numbered rows."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from fedrec.data.readers.rows import Rows
from fedrec.errors import BadInput

LOOK = 1000
"""Rows that tell most tables."""
PART = r"[^,;|\s]*[0-9][^,;|\s]*"
LIST = rf"^\W*{PART}(\s?[,;|]\s?{PART})+$"
"""Words with digits, and marks between them: no title."""
ONE_EACH = "write a line for each (user item)"


def refuse(path: Path, rows: Rows, *, header: bool, blanks: bool) -> None:
    """Refuse what was read as a table, where it may as well be something else; ``blanks``: blanks or tabs part its
    cells. With one interaction a user, such a table is of no use anyway."""
    for most in (LOOK, len(rows)):
        users = rows.users.slice(0, most)
        if len(users) < 2 or pc.count_distinct(users).as_py() < len(users):
            return
    listed = pc.match_substring_regex(rows.items.slice(0, LOOK), LIST)
    if pc.mean(pc.cast(listed, pa.float64())).as_py() >= 0.5:
        raise BadInput(f"{path}: each user is there once, with a list in the place of an item; {ONE_EACH}")
    further = [column for column in (rows.ratings, rows.times) if column is not None]
    if header or not further:
        return
    if blanks and _are_items(np.concatenate(further), rows.items):
        raise BadInput(
            f"{path}: a table, or a line for each user with the user's items? each user is there once; of a table, put "
            f"a header above it (user item rating); of items, {ONE_EACH}"
        )
    if _counts(rows.users):
        raise BadInput(
            f"{path}: the first column counts the rows; put a header above the table (row,user,item,...), or leave the "
            "column out"
        )


def _counts(users: pa.ChunkedArray) -> bool:
    """Whether these ids are 0, 1, 2, ... or 1, 2, 3, ... in order, of three rows or more."""
    numbers = _whole(users)
    return (
        numbers is not None
        and len(numbers) > 2
        and any((numbers == first + np.arange(len(numbers))).all() for first in (0, 1))
    )


def _are_items(values: np.ndarray, items: pa.ChunkedArray) -> bool:
    """Whether some of these numbers are items."""
    numbers = _whole(items)
    return numbers is not None and bool(np.isin(values, numbers).any())


def _whole(ids: pa.ChunkedArray) -> np.ndarray | None:
    """Ids as whole numbers, where all are."""
    try:
        return np.asarray(pc.cast(pc.utf8_trim_whitespace(ids), pa.int64()).to_numpy())
    except pa.ArrowInvalid:
        return None
