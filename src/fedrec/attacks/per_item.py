"""An upload seen item by item: for each item of the catalogue, the numbers that speak of it."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from fedrec.attacks.contract import Exchanged, Float64, Seen
from fedrec.attacks.listed_rows import listed_tables
from fedrec.core.messages import Rows, opened
from fedrec.maths.packed import packed_size, unpack

ROUNDING = 1e-4
"""Differences below this share of the largest are none."""


def tables(seen: Seen, place: int = -1) -> dict[str, Float64]:
    """``[n_items, width]`` for each field of an upload that has a row, a column or an entry for each item, or that has
    rows beside the numbers of their items.

    Of whole tables the start is taken off: the server knows what it sent and what it got last (FedCA's blend).
    """
    now, m = seen.rounds[place], seen.world.n_items
    found: dict[str, Float64] = {}
    listed = listed_tables(now.upload, m)
    for name, content in opened(now.upload):
        array = listed[name] if name in listed else _whole(content, m)
        if array is None:
            continue
        start = _start_listed(seen, place, name) if name in listed else _start(seen, place, name)
        if start is not None:  # without what 32-bit arithmetic leaves in rows that did not change
            change = array - start
            array = np.where(np.abs(change) > ROUNDING * np.abs(change).max(initial=0.0), change, 0.0)
        found[name] = array
    return found


def _whole(content: Any, m: int) -> Float64 | None:
    if isinstance(content, Rows):
        table = content.dense().sum(0)  # one client
        if content.n_items == m:
            return np.asarray(table, np.float64)
        return np.asarray(unpack(table[:, 0], m), np.float64) if content.n_items == packed_size(m) else None
    if not isinstance(content, np.ndarray) or content.dtype.kind != "f" or content.ndim < 2:
        return None
    if content[0].size == packed_size(m):
        return np.asarray(unpack(content[0].ravel(), m), np.float64)
    if content.ndim == 3 and content.shape[1] == m:
        return np.asarray(content.sum(0), np.float64)
    if content.ndim == 3 and content.shape[2] == m:  # an output layer: its columns are items
        return content.reshape(-1, m).T.astype(np.float64)
    return None


def _start(seen: Seen, place: int, name: str) -> Float64 | None:
    """What a whole table started from, where the upload has one (a download field of the same name and shape)."""
    sent = getattr(seen.rounds[place].download, name, None)
    if name != "tables" or not isinstance(sent, np.ndarray) or sent.ndim != 3:
        return None
    at = place % len(seen.rounds)
    last = getattr(seen.rounds[at - 1].upload, name)[0] if at else sent[0]
    return _blend(seen, last, sent[0])


def _start_listed(seen: Seen, place: int, name: str) -> Float64 | None:
    """The same where both list their rows, as differences from one and the same table; of rows that came, no others."""
    m, at = seen.world.n_items, place % len(seen.rounds)
    sent = listed_tables(seen.rounds[at].download, m).get(name)
    if sent is None:
        return None
    came = touched(listed_tables(seen.rounds[at].upload, m)[name])
    last = listed_tables(seen.rounds[at - 1].upload, m)[name] if at else sent
    return np.where(came[:, None], _blend(seen, last, sent), 0.0)


def _blend(seen: Seen, last: Any, sent: Any) -> Float64:
    """FedCA, section 5.1.3: the client's own last table and the one it was sent."""
    rho = float(getattr(seen.method.settings, "rho", 0.0))
    return np.asarray(rho * last + (1 - rho) * sent, np.float64)


def main_table(seen: Seen, place: int = -1) -> Float64 | None:
    """The table with most to say: that of the first field that has one."""
    return next(iter(tables(seen, place).values()), None)


def touched(table: Float64) -> NDArray[np.bool_]:
    """``[n_items]`` whose numbers are not all zero."""
    return np.asarray((table != 0).any(1))


def along_first_direction(table: Float64) -> Float64:
    """``[n_items]`` each row along the first principal direction; few large ones point up (positive skew)."""
    rows = touched(table)
    scores = np.zeros(len(table))
    if rows.sum() < 2:
        scores[rows] = 1.0
        return scores
    direction = np.linalg.svd(table[rows], full_matrices=False)[2][0]
    along = table[rows] @ direction
    # the items of a client are fewer than what it was trained against, so the smaller side is theirs
    if (along > 0).sum() > (along < 0).sum() or ((along > 0).sum() == (along < 0).sum() and along.sum() < 0):
        along = -along
    scores[rows] = along
    return scores


def size_field(exchanged: Exchanged) -> float | None:
    """A number of interactions that the client says itself."""
    for name in ("sizes", "counts"):
        content = getattr(exchanged.upload, name, None)
        if content is not None:
            return float(np.sum(content))
    return None
