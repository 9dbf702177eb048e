"""Ids as text, checked before anything is made as wide as the widest of them."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from fedrec.data import limits
from fedrec.data.readers.faults import Faults

if TYPE_CHECKING:
    import pyarrow as pa


def require(users: pa.ChunkedArray, items: pa.ChunkedArray, faults: Faults) -> None:
    """Refuse a file in which an id is no id, or a row has another fault."""
    check(users, "user", faults)
    check(items, "item", faults)
    faults.kept()


def check(column: pa.ChunkedArray, what: str, faults: Faults) -> None:
    """Count rows without an id among the faults; an id that is too long or has line ends is never passed over."""
    import pyarrow.compute as pc

    def rows(bad: pa.ChunkedArray) -> NDArray[np.bool_]:
        return np.asarray(pc.fill_null(bad, False).to_numpy(zero_copy_only=False), dtype=np.bool_)

    def refuse(bad: pa.ChunkedArray, why: str) -> None:
        faults.add(rows(bad), lambda row: why, fatal=True)

    words = pc.utf8_trim_whitespace(column)
    if (pc.max(pc.binary_length(words)).as_py() or 0) > limits.ID:
        long = pc.greater(pc.utf8_length(words), limits.ID)
        refuse(long, f"the {what} id is longer than {limits.ID} characters; is a quote left open before it?")
    for sign, name in (("\0", "a NUL character"), ("\n", "a line end")):
        found = pc.match_substring(words, sign)
        if pc.any(found).as_py():
            refuse(found, f"{name} in the {what} id; is a quote left open?")
    blank = pc.equal(pc.binary_length(words), 0)
    faults.add(rows(pc.or_kleene(blank, pc.is_null(words))), lambda row: f"no {what} id")
