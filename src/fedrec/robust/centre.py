"""Coordinate-wise median and trimmed mean: every client's change is replaced by a centre that few cannot move.

Yin et al., "Byzantine-robust distributed learning: towards optimal statistical rates", ICML 2018. All clients then
send the centre, so that any method that needs no more than a sum of uploads gets it whatever its weights are. Of an
item table only those count who changed a row (the median over all clients would be zero for nearly every item), and
the row's centre is scaled by their share. What nobody but dishonest clients touches stays theirs: join with ``rows``.
"""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fedrec.core.messages import Rows
from fedrec.core.method import Keys, Reply
from fedrec.data.ragged import offsets
from fedrec.errors import BadInput
from fedrec.robust.fields import View
from fedrec.robust.spool import Mapped

AT_ONCE = 1 << 24
"""Numbers that are sorted at once; the rest of a round lies where the uploads lie."""


@dataclasses.dataclass(frozen=True)
class Centre:
    """The mean of what is left when a share of the lowest and of the highest is cut off; a half leaves the median."""

    trim: float = 0.5

    def guarded(self, replies: Sequence[Reply[Any]], view: View, keys: Keys) -> Sequence[Reply[Any]]:
        if not view.method.card.sum_suffices:
            raise BadInput(
                f"{view.method.name} needs each client's own upload, but a median or trimmed mean makes all uploads "
                "the same; use bound, rows or krum"
            )
        clients = sum(len(reply.clients) for reply in replies)
        centres = {
            part.name: self.of_rows(replies, view, part, clients)
            if isinstance(part.content, Rows)
            else self.of_arrays(replies, view, part.name, part.width)
            for part in view.parts(replies[0])
        }

        def centred(place: int, reply: Reply[Any]) -> Reply[Any]:
            return view.filled(reply, [_repeated(part, centres[part.name]) for part in view.parts(reply)])

        return Mapped(replies, centred)

    def of_rows(self, replies: Sequence[Reply[Any]], view: View, like: Any, clients: int) -> NDArray[np.float64]:
        """``[n_items, width]`` for each row the centre of those who changed it, times their share of all clients who
        have it: all, unless rows that are not listed do not exist."""
        name, width, n_items = like.name, like.width, like.content.n_items
        touched = np.zeros(n_items, np.int64)
        for reply in replies:
            touched += np.bincount(_part(view, reply, name).content.ids, minlength=n_items)
        centre = np.zeros((n_items, width))
        before = np.concatenate([[0], np.cumsum(touched)]) * width
        first = 0
        while first < n_items:
            last = max(first + 1, int(np.searchsorted(before, before[first] + AT_ONCE, side="right")) - 1)
            ids, values = [], []
            for reply in replies:
                part = _part(view, reply, name)
                inside = (part.content.ids >= first) & (part.content.ids < last)
                ids.append(part.content.ids[inside])
                values.append(part.numbers[inside])
            found, numbers = np.concatenate(ids), np.concatenate(values)
            order = np.argsort(found, kind="stable")
            cuts = offsets(np.bincount(found - first, minlength=last - first))
            for item in np.flatnonzero(np.diff(cuts)):
                own = numbers[order[cuts[item] : cuts[item + 1]]]
                centre[first + item] = self.middle(own) * (1.0 if like.listed else len(own) / clients)
            first = last
        return centre

    def of_arrays(self, replies: Sequence[Reply[Any]], view: View, name: str, width: int) -> NDArray[np.float64]:
        """``[1, width]`` centre of each coordinate over all entries."""
        entries = sum(len(_part(view, reply, name).numbers) for reply in replies)
        step = max(1, AT_ONCE // max(1, entries))
        parts = [
            self.middle(np.concatenate([_part(view, r, name).numbers[:, at : at + step] for r in replies]))
            for at in range(0, width, step)
        ]
        return np.concatenate(parts)[None]

    def middle(self, values: NDArray[Any]) -> NDArray[np.float64]:
        """The trimmed mean along the first axis."""
        ordered = np.sort(values.astype(np.float64), axis=0)
        # rounded up: of a row that few have changed, one of them may be dishonest
        cut = min(math.ceil(self.trim * len(ordered) - 1e-9), (len(ordered) - 1) // 2)
        return np.asarray(ordered[cut : len(ordered) - cut].mean(0))


def _part(view: View, reply: Reply[Any], name: str) -> Any:
    return next(part for part in view.parts(reply) if part.name == name)


def _repeated(part: Any, centre: NDArray[np.float64]) -> Any:
    """The part as it would be had every client sent the centre."""
    if not isinstance(part.content, Rows):
        return dataclasses.replace(part, numbers=np.repeat(centre, len(part.numbers), 0).astype(part.numbers.dtype))
    clients = part.content.n_clients
    ids = np.flatnonzero(centre.any(1)).astype(np.int32)
    numbers = np.tile(centre[ids], (clients, 1)).astype(part.numbers.dtype)
    whole = Rows(offsets(np.full(clients, len(ids))), np.tile(ids, clients), numbers, part.content.n_items)
    return dataclasses.replace(part, content=whole, start=whole.start, numbers=numbers)
