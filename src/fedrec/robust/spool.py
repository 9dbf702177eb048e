"""Replies of a round as defences need them: kept for a second look, and changed when they are looked at.

They are kept in memory while there is room, in nameless files after; what is changed has no second copy of a round.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Iterable, Sequence
from typing import Any

import numpy as np

from fedrec.core.disk_array import on_disk
from fedrec.core.method import Reply
from fedrec.core.state import flatten
from fedrec.memory import MIB


def spooled(replies: Iterable[Reply[Any]], memory_mb: float) -> list[Reply[Any]]:
    """All replies; arrays beyond ``memory_mb`` lie on disk and behave as before."""
    left = int(memory_mb * MIB)
    kept: list[Reply[Any]] = []
    for reply in replies:
        size = sum(array.nbytes for array in flatten(reply.upload)[0].values())
        kept.append(reply if size <= left else dataclasses.replace(reply, upload=_on_disk(reply.upload)))
        left -= min(size, left)
    return kept


class Mapped(Sequence[Reply[Any]]):
    """Replies (at some ``places`` only), each passed through ``change(place, reply)`` every time it is asked for."""

    def __init__(
        self,
        replies: Sequence[Reply[Any]],
        change: Callable[[int, Reply[Any]], Reply[Any]],
        places: Sequence[int] | None = None,
    ) -> None:
        self.replies, self.change = replies, change
        self.places = range(len(replies)) if places is None else places

    def __len__(self) -> int:
        return len(self.places)

    def __getitem__(self, index: Any) -> Any:
        if isinstance(index, slice):
            return Mapped(self.replies, self.change, self.places[index])
        return self.change(self.places[index], self.replies[self.places[index]])


def _on_disk(value: Any) -> Any:
    if isinstance(value, np.ndarray):
        copy = on_disk(value.shape, value.dtype, reserve=True)
        copy[...] = value
        return copy
    if isinstance(value, dict):
        return {key: _on_disk(entry) for key, entry in value.items()}
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        return dataclasses.replace(
            value, **{s.name: _on_disk(getattr(value, s.name)) for s in dataclasses.fields(value)}
        )
    return value
