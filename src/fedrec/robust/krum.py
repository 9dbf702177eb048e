"""Multi-Krum: only clients whose changes have enough others near them are folded.

Blanchard et al., "Machine learning with adversaries: Byzantine tolerant gradient descent", NeurIPS 2017. A client's
score is the sum of squared distances to its ``n - f - 2`` nearest others; the ``n - f`` lowest are folded. Distances
are those of sketches (each coordinate with a sign in one of a few thousand places), exact where an upload has no more
coordinates than places; of very many clients a sample stands for the others. So memory does not grow with the upload.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fedrec import keyed
from fedrec.core.messages import Rows, gather
from fedrec.core.method import Keys, Reply
from fedrec.robust.fields import View
from fedrec.robust.spool import Mapped

PLACES = 2048
"""Numbers of a sketch."""
LARGEST = 1e42
"""A squared norm beyond which nobody is near anybody."""
OTHERS = 2000
"""Clients that stand for all where there are more."""


@dataclass(frozen=True)
class Krum:
    """``share`` is f / n, the part of the clients that may be dishonest."""

    share: float = 0.1

    def guarded(self, replies: Sequence[Reply[Any]], view: View, keys: Keys) -> Sequence[Reply[Any]]:
        clients = np.concatenate([reply.clients for reply in replies])
        made = [sketch(reply, view, keyed.stream(keys.seed, "krum")) for reply in replies]
        sketches, squares = (np.concatenate(each) for each in zip(*made, strict=True))
        kept = np.isin(clients, clients[self.chosen(sketches, squares, clients, keys)])
        cuts = np.cumsum([len(reply.clients) for reply in replies])[:-1]
        here = [np.flatnonzero(part) for part in np.split(kept, cuts)]  # positions within each reply

        def left(place: int, reply: Reply[Any]) -> Reply[Any]:
            if len(here[place]) == len(reply.clients):
                return reply
            return Reply(reply.clients[here[place]], gather(reply.upload, view.places(reply), here[place]))

        return Mapped(replies, left, [place for place, some in enumerate(here) if len(some)])

    def chosen(
        self, points: NDArray[np.float64], squares: NDArray[np.float64], clients: NDArray[Any], keys: Keys
    ) -> NDArray[np.int64]:
        """Positions of the clients that are folded; ``squares`` are the squared norms of their whole changes."""
        n = len(points)
        dishonest = int(np.ceil(self.share * n))
        draw = keyed.streams(keyed.stream(keys.seed, keys.round, "krum"), clients.astype(np.uint64))
        others = np.sort(np.argsort(draw, kind="stable")[:OTHERS])
        near = max(1, round((n - dishonest - 2) * len(others) / n))
        scores = np.empty(n)
        for first in range(0, n, 256):
            some = slice(first, first + 256)
            distances = squares[some, None] + squares[others][None] - 2 * points[some] @ points[others].T
            distances[others[None] == np.arange(n)[some, None]] = np.inf  # not itself
            scores[some] = np.sort(np.maximum(distances, 0), axis=1)[:, : min(near, len(others) - 1)].sum(1)
        return np.sort(np.argsort(scores, kind="stable")[: max(1, n - dishonest)])


def sketch(reply: Reply[Any], view: View, key: int) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """``[clients, PLACES]`` each client's change with its coordinates thrown together, signs at random; and its squared
    norm ``[clients]``: who knows the signs could hide a large change in places where it cancels, but not from this."""
    parts = view.parts(reply)
    widths = [p.content.n_items * p.width if isinstance(p.content, Rows) else p.width for p in parts]
    exact = sum(widths) <= PLACES
    found, squares = np.zeros((len(reply.clients), PLACES)), np.zeros(len(reply.clients))
    for part, first in zip(parts, np.cumsum([0, *widths[:-1]]), strict=True):
        rows = part.content.ids if isinstance(part.content, Rows) else np.zeros(len(part.numbers), np.int64)
        at = first + rows.astype(np.int64)[:, None] * part.width + np.arange(part.width)
        place, sign = at, np.ones_like(at)
        if not exact:
            drawn = keyed.streams(key, at.astype(np.uint64).reshape(-1)).reshape(at.shape)
            place = (drawn % np.uint64(PLACES)).astype(np.int64)
            sign = 1 - 2 * (drawn >> np.uint64(63)).astype(np.int64)
        with np.errstate(over="ignore", invalid="ignore"):
            np.add.at(squares, part.owners, (part.numbers.astype(np.float64) ** 2).sum(1))
        np.add.at(found, (np.broadcast_to(part.owners[:, None], at.shape), place), part.numbers * sign)
    limit = np.nan_to_num(found, nan=1e18, posinf=1e18, neginf=-1e18)
    return np.clip(limit, -1e18, 1e18), np.nan_to_num(squares, nan=LARGEST, posinf=LARGEST).clip(0, LARGEST)
