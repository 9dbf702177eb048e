"""What stands between the uploads of a round and a method's fold: pieces by name, one after another.

    none      nothing
    bound     every change within the round's median norm, sizes capped at their median
    rows      every row of an item table's change within the usual client's largest row
    median    coordinate-wise median          (methods that need no more than a sum)
    trimmed   coordinate-wise trimmed mean    (the same)
    krum      clients far from most others are left out

A piece needs all norms before it changes the first upload, so a round's uploads are kept until all are there: in memory
up to a limit, then in files. What comes out does not depend on how clients are cut into blocks.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

from fedrec.core.method import Keys, Method, Reply
from fedrec.data.ragged import Int64
from fedrec.errors import BadInput, nearest
from fedrec.robust.bound import Bound, RowBound
from fedrec.robust.centre import Centre
from fedrec.robust.fields import View
from fedrec.robust.krum import Krum
from fedrec.robust.spool import spooled

LEAST = 10
"""Clients of a round below which nothing is done: the median of a handful says nothing, and they know one another."""


class Piece(Protocol):
    """One thing done to the uploads of a round before they are folded."""

    def guarded(self, replies: Sequence[Reply[Any]], view: View, keys: Keys) -> Sequence[Reply[Any]]:
        """The replies as they may be folded; the given ones are not changed."""


@dataclass(frozen=True)
class Defence:
    """Pieces in the order in which a round's uploads pass them."""

    pieces: tuple[Piece, ...] = ()
    memory_mb: float = 512

    def fold(
        self,
        method: Method[Any, Any, Any, Any],
        server: Any,
        replies: Iterator[Reply[Any]],
        keys: Keys,
        users: Int64,
        n_items: int,
    ) -> Any:
        """The server's next state; ``users`` ``[all clients]`` are the clients' numbers of users."""
        if not self.pieces:
            return method.aggregate(server, replies, keys)
        kept: Sequence[Reply[Any]] = spooled(replies, self.memory_mb)
        if sum(len(reply.clients) for reply in kept) >= LEAST:
            view = View(method, server, users, n_items)
            for piece in self.pieces:
                kept = piece.guarded(kept, view, keys)
        return method.aggregate(server, iter(kept), keys)


def defence(names: str, factor: float = 1.0, share: float = 0.1, memory_mb: float = 512) -> Defence:
    """The defence of that name; several pieces are joined by ``+``.

    >>> [type(piece).__name__ for piece in defence("bound+rows").pieces]
    ['Bound', 'RowBound']
    """
    made: dict[str, Piece | None] = {
        "none": None,
        "bound": Bound(factor),
        "rows": RowBound(factor),
        "median": Centre(),
        "trimmed": Centre(share),
        "krum": Krum(share),
    }
    chosen = names.split("+")
    for name in chosen:
        if name not in made:
            raise BadInput(f"robust {names!r} has no piece {name!r}; {nearest(name, made)}, and join several by +")
    if "none" in chosen and len(chosen) > 1:
        raise BadInput(f"robust {names!r} joins none with other pieces; give none alone, or leave it out")
    return Defence(tuple(piece for name in chosen if (piece := made[name]) is not None), memory_mb)
