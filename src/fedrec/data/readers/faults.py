"""Rows that cannot be read: left out and counted where they are few, refused where they are many."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from fedrec.data.readers.rows import Place
from fedrec.errors import BadInput

SHARE = 0.01
"""Share of a person's own rows that may be unreadable."""
LISTED = 5
"""Unreadable rows that are named."""


@dataclass
class Faults:
    """What is wrong with the rows of one file."""

    rows: int
    place: Place
    share: float = 0.0
    """Share of rows that may be left out."""
    torn: Sequence[str] = ()
    """What is wrong with rows that have too few or too many cells, the first few of them, with their places."""
    n_torn: int = 0
    headers: NDArray[np.bool_] | None = None
    """Rows that say the header again: left out, however many."""
    fatal: bool = False
    """Whether one of the faults must not be passed over, however few rows have it."""
    _bad: list[tuple[NDArray[np.bool_], Callable[[int], str]]] = field(default_factory=list)

    def add(self, bad: NDArray[np.bool_], say: Callable[[int], str], *, fatal: bool = False) -> None:
        """Rows with one kind of fault; ``say`` tells what is wrong with a row."""
        if bad.any():
            self._bad.insert(0, (bad, say)) if fatal else self._bad.append((bad, say))
            self.fatal = self.fatal or fatal

    def kept(self) -> tuple[NDArray[np.int64] | None, int, tuple[str, ...]]:
        """The rows to keep (None: all), how many are left out, and what is said of the first of those."""
        if not self._bad and not self.n_torn and self.headers is None:
            return None, 0, ()
        if self.fatal:
            raise BadInput(self._say(int(np.argmax(self._bad[0][0]))))
        bad = np.zeros(self.rows, np.bool_)
        for rows, _ in self._bad:
            bad |= rows
        again = np.zeros(self.rows, np.bool_) if self.headers is None else self.headers
        bad &= ~again
        count = int(bad.sum()) + self.n_torn
        first = [self._say(int(row)) for row in np.flatnonzero(bad)[:LISTED]]
        listed = tuple([*self.torn, *first][:LISTED])
        total = self.rows + self.n_torn
        if count > self.share * total:
            many = f" ({count} of {total} rows cannot be read)" if count > 1 else ""
            usual = first[0] if count > 2 * self.n_torn else listed[0]  # what is wrong with most of them
            raise BadInput(f"{usual}{many}")
        return np.flatnonzero(~(bad | again)), count, listed

    def _say(self, row: int) -> str:
        return next(f"{self.place(row)}: {say(row)}" for rows, say in self._bad if rows[row])
