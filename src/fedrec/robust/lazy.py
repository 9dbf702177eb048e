"""Replies that are changed when they are looked at: a defence needs no second copy of a round."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, overload

from fedrec.core.method import Reply


class Mapped(Sequence[Reply[Any]]):
    """A sequence of replies, each passed through ``change(place, reply)`` every time it is asked for."""

    def __init__(self, replies: Sequence[Reply[Any]], change: Callable[[int, Reply[Any]], Reply[Any]]) -> None:
        self.replies, self.change = replies, change

    def __len__(self) -> int:
        return len(self.replies)

    @overload
    def __getitem__(self, index: int) -> Reply[Any]: ...

    @overload
    def __getitem__(self, index: slice) -> Sequence[Reply[Any]]: ...

    def __getitem__(self, index: int | slice) -> Reply[Any] | Sequence[Reply[Any]]:
        if isinstance(index, slice):
            return [self[place] for place in range(*index.indices(len(self)))]
        return self.change(index, self.replies[index])
