"""The one shape in which data enters: who touched what, and when."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from fedrec import keyed
from fedrec.data.ragged import Int32, Int64, Ragged, offsets
from fedrec.data.understood import Understood

TRAIN, VALID, TEST = 0, 1, 2


@dataclass(frozen=True)
class Interactions:
    """Pairs of user and item as dense integers, with the data's own ids kept beside them.

    Rows are ordered by user, then by time (by the source's own order where there is no time).
    No pair occurs twice.
    """

    name: str
    """What the data is called in tables and files."""
    users: Int32
    """User of each interaction, an index into ``user_ids``."""
    items: Int32
    """Item of each interaction, an index into ``item_ids``."""
    user_ids: NDArray[np.str_]
    """The data's own user ids, as text."""
    item_ids: NDArray[np.str_]
    """The data's own item ids, as text."""
    times: Int64 | None = None
    """Time of each interaction, or None where the data has none."""
    titles: NDArray[np.object_] | None = None
    """A title for each item, where the data has them."""
    client_of_user: Int32 | None = None
    """The client that holds each user, where the data says so (an index into ``client_ids``)."""
    client_ids: NDArray[np.str_] | None = None
    """Names of the clients, where the data has them."""
    part: NDArray[np.int8] | None = None
    """TRAIN, VALID or TEST for each interaction, where the data comes ready split."""
    rated_low: Ragged | None = None
    """Items each user rated too low to count as an interaction, ascending: neither learnt from nor recommended."""
    notes: tuple[str, ...] = field(default=())
    """What was done on the way in (filters, merged repeats), for the run's record."""
    understood: Understood | None = None
    """How the file was read, where it was a file or a table."""

    @property
    def n_users(self) -> int:
        return len(self.user_ids)

    @property
    def n_items(self) -> int:
        return len(self.item_ids)

    def __len__(self) -> int:
        return len(self.users)

    @cached_property
    def user_keys(self) -> keyed.U64:
        """``[n_users]`` for keyed randomness: depends on the user's own id only."""
        return keyed.keys_of(self.user_ids)

    @property
    def user_start(self) -> Int64:
        """Where each user's rows begin: ``[n_users + 1]``."""
        return offsets(np.bincount(self.users, minlength=self.n_users))

    def with_notes(self, *notes: str) -> Interactions:
        """The same data with more said about its past."""
        return replace(self, notes=self.notes + notes)


def renumbered(codes: Int32) -> tuple[Int64, Int32]:
    """The numbers in use, ascending, and the place of each of ``codes`` among those."""
    counts = np.bincount(codes)
    return np.flatnonzero(counts), (np.cumsum(counts > 0, dtype=np.int32) - np.int32(1))[codes]


def numeric_order(ids: NDArray[np.str_]) -> NDArray[np.int64]:
    """The order of ids that are whole numbers; equal numbers ('7', '07') in text order."""
    if ids.dtype.itemsize // 4 <= 18:  # fits 64 bits
        return np.lexsort((ids, ids.astype(np.int64)))
    return np.array(sorted(range(len(ids)), key=lambda i: (int(ids[i]), ids[i])), dtype=np.int64)
