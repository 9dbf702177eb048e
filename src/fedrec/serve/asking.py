"""What may be asked of a service, and the limits of it."""

from __future__ import annotations

from dataclasses import dataclass

from fedrec.errors import BadInput

MOST_K = 1_000
"""Items of one list."""
MOST_IDS = 10_000
"""Items of a history or of a filter."""
MOST_LISTS = 1_000
"""Lists of one batch."""
MOST_BYTES = 1 << 20
"""Bytes of a body."""

Ids = tuple[str | int, ...]


class UnknownUser(BadInput):
    """Somebody of whom the model knows nothing."""


class QueueFull(Exception):
    """More is asked than can wait."""


@dataclass(frozen=True, eq=False)
class Filters:
    """Items never to list, and those to list alone; asks with the same object are listed together."""

    exclude: Ids = ()
    only: Ids | None = None


ALL_ITEMS = Filters()


@dataclass(frozen=True)
class Ask:
    """One list: for a user of the training, or for somebody with a history."""

    k: int
    user: str | None = None
    history: Ids = ()
    filters: Filters = ALL_ITEMS
