"""Whole histories out of sums of pairs: where all who have an item have the same, its row is their history."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from fedrec.attacks.contract import AttackCard, Float64, Found, History, Reader, Seen
from fedrec.attacks.per_item import ROUNDING, tables

NOISY = 0.25
"""How far the entries of a row may be from nothing and from its diagonal, as a share of it, in a sum with noise."""
ZEROS = 0.01
"""A sum of which so large a share of entries is zero has no noise."""
SMALL = 0.07
"""Usual distance of counts from whole numbers up to which rounding finds the counts: noise of deviation 0.1."""
LEFT = 1e-6
"""What is smaller than this share of the largest count is what arithmetic left of nothing."""
AT_ONCE = 1024
"""Rows that are looked at together."""


class PairSums(Reader):
    """A sum of ``w_u x_u x_u'`` over users. The row of an item that one user alone has is ``w_u x_u``: its entry for
    the item itself is as large as all others of it. Nobody need know which item that is, or whose.

    Such a history can be taken off the sum, which leaves other items with one owner, and so on.
    """

    name = "pairs"
    rounds = 3
    card = AttackCard(
        title="whole histories that are rows of a sum of item pairs, and those that appear when these are subtracted",
        paper="this project's audit",
        who="server",
        sees="in every round, uploads or sums that tell how often items occur together; not whose history is whose",
    )

    def read(self, seen: Sequence[Seen]) -> list[Found | None]:
        known: dict[int, list[History] | None] = {}  # many clients are in the same sum

        def of(one: Seen, place: int) -> list[History] | None:
            upload = id(one.rounds[place].upload)
            if upload not in known:
                known[upload] = _read(one, place)
            return known[upload]

        found: list[Found | None] = []
        for one in seen:
            each = [histories for place in range(len(one.rounds)) if (histories := of(one, place)) is not None]
            found.append(Found(histories=tuple(h for histories in each for h in histories)) if each else None)
        return found


def _read(seen: Seen, place: int) -> list[History] | None:
    square = [table for table in tables(seen, place).values() if table.shape[0] == table.shape[1]]
    return [history for table in square for history in histories_in(table)] if square else None


def histories_in(pairs: Float64) -> list[History]:
    """The histories that stand in a sum of pairs ``[m, m]`` as rows, and what shows when they are taken off."""
    pairs = counted(pairs)
    exact = without_noise(pairs)
    left, found = pairs.copy(), []
    rows, wave = np.arange(len(pairs)), 0
    while len(rows):
        changed = np.zeros(len(pairs), bool)
        for item in rows[agreed(left, rows, ROUNDING if exact else NOISY)]:
            if changed[item]:  # a row of a history that was taken off just now
                continue
            own = left[item, item]
            history = np.flatnonzero(left[item] > own / 2)
            found.append(History(history, wave))
            left[np.ix_(history, history)] -= own
            changed[history] = True
        if not exact:  # what is left of noise is no sum of pairs
            return found
        left[np.abs(left) < LEFT * np.diag(pairs).max()] = 0.0
        rows, wave = np.flatnonzero(changed), wave + 1
    return found + [History(np.flatnonzero(pairs[item])) for item in single(pairs)]


def without_noise(pairs: Float64) -> bool:
    return float((pairs == 0).mean()) > ZEROS


def counted(pairs: Float64) -> Float64:
    """Counts of pairs without noise that is too small to hide them."""
    own = np.diag(pairs)[np.diag(pairs) > 0.5]
    if without_noise(pairs) or not len(own) or np.median(np.abs(own - np.rint(own))) > SMALL:
        return pairs
    return np.rint(pairs)


def agreed(pairs: Float64, rows: NDArray[np.int64], slack: float) -> NDArray[np.bool_]:
    """``[rows]`` whose entries are all nothing, or as large as that on the diagonal."""
    found = np.zeros(len(rows), bool)
    for first in range(0, len(rows), AT_ONCE):
        part = slice(first, first + AT_ONCE)
        some, own = pairs[rows[part]], pairs[rows[part], rows[part]]
        edge = slack * own[:, None]
        near = (np.abs(some) < edge) | (np.abs(some - own[:, None]) < edge)
        found[part] = (own > 0) & near.all(1)
    return found


def single(pairs: Float64) -> NDArray[np.int64]:
    """Items that count one, where the diagonal counts owners, though their pairs count less (fedease's pair_span)."""
    own = np.diag(pairs)
    counts = (np.abs(own - np.rint(own)) < ROUNDING).all()
    rows = np.flatnonzero(counts & (np.abs(own - 1) < ROUNDING))
    return rows[~agreed(pairs, rows, ROUNDING)]
