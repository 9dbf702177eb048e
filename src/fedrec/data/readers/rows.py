"""What every reader hands over: columns of text and numbers, one entry per row of the file."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from fedrec.data.understood import Understood

Place = Callable[[int], str]


def nowhere(row: int) -> str:
    """The place of a row when the reader knows no better: its number, counted from 1."""
    return f"row {row + 1}"


@dataclass(frozen=True)
class Rows:
    """Rows as the file has them: ids still text, repeats still there, nothing filtered."""

    users: pa.ChunkedArray
    """User id of each row, as text."""
    items: pa.ChunkedArray
    """Item id of each row, as text."""
    ratings: NDArray[np.float64] | None = None
    """Rating of each row, where there is one; a row counts when it is above 0."""
    times: NDArray[np.int64] | NDArray[np.float64] | None = None
    """Time of each row, where there is one."""
    clients: pa.ChunkedArray | None = None
    """Client id of each row, as text, where there is one."""
    part: NDArray[np.int8] | None = None
    """TRAIN, VALID or TEST of each row of a ready split."""
    titles: Mapping[str, str] | None = None
    """Item id to title, where the data has them."""
    place: Place = field(default=nowhere)
    """Where a row stands, for an error: 'ratings.csv line 7'."""
    given: bool = False
    """Whether a person made this file: ids of mixed kind are then mistakes, and of a repeated pair the last row
    stays (where there are times), not the earliest."""
    notes: tuple[str, ...] = ()
    """What the reader did on the way."""
    understood: Understood | None = None
    """How the file was read."""

    def __len__(self) -> int:
        return len(self.users)

    def titled(self, path: Path, names: Sequence[str], read: Callable[[Path], Mapping[str, str] | None]) -> Rows:
        """The same rows with titles out of the first of these files that lies beside ``path``, where one does."""
        found = next((beside for name in names if (beside := path.with_name(name)).is_file()), None)
        return replace(self, titles=None if found is None else read(found))

    def take(self, kept: NDArray[np.int64] | None) -> Rows:
        """Only these rows, which keep their places; None: all."""
        if kept is None:
            return self
        place, index = self.place, pa.array(kept)
        return replace(
            self,
            users=self.users.take(index),
            items=self.items.take(index),
            ratings=None if self.ratings is None else self.ratings[kept],
            times=None if self.times is None else self.times[kept],
            clients=None if self.clients is None else self.clients.take(index),
            part=None if self.part is None else self.part[kept],
            place=lambda row: place(int(kept[row])),
        )
