"""A server that does not keep to the protocol: it asks for columns of the pair sum, and reads whole histories there."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from fedrec.attacks.contract import Asking, AttackCard, Float64, Found, History, Seen
from fedrec.attacks.pair_sums import NOISY
from fedrec.attacks.per_item import ROUNDING, tables


class AskedColumns(Asking):
    """FedSpectral's clients apply whatever W they are sent, and return their part of ``X' D_u^-1 X W`` and item counts.

    A column of W that is 1 at one item and 0 elsewhere returns that item's column of the pair sum. The first round is
    as it should be and tells which items fewest have; the next ask for these, as many as W has columns. Where one user
    alone has the item, the column is that user's history.
    """

    name = "columns"
    rounds = 3
    card = AttackCard(
        title="whole histories that are columns of a pair sum, by a server that sends a matrix to ask for them",
        paper="this project's audit; after Boenisch et al., When the curious abandon honesty, EuroS&P 2023",
        who="active server",
        sees="uploads or sums; it chooses the matrix that clients apply to their histories (fedspectral)",
    )

    def suits(self, method: Any) -> bool:
        return hasattr(method, "asked")

    def asks(self, method: Any, download: Any, number: int) -> Any:
        chosen = method.asked(download)
        if not download.degrees.any():  # nothing is known yet
            return download
        owned = np.flatnonzero(download.degrees > 0)
        rarest = owned[np.argsort(download.degrees[owned], kind="stable")]
        width = chosen.shape[1]
        items = rarest[(number - 2) * width : (number - 1) * width]
        sent = download.sent.copy()
        sent[:, :width] = 0.0
        sent[items, np.arange(len(items))] = 1.0
        return replace(download, sent=sent)

    def read(self, seen: Sequence[Seen]) -> list[Found | None]:
        return [_read(one) for one in seen]


def _read(seen: Seen) -> Found | None:
    found: list[History] = []
    method: Any = seen.method
    for place, one in enumerate(seen.rounds):
        asked = method.asked(one.download)
        table = next(iter(tables(seen, place).values()), None)
        if table is None:
            return None
        for column in np.flatnonzero((asked != 0).sum(0) == 1):
            history = _whole(table[:, column], int(np.flatnonzero(asked[:, column])[0]))
            if history is not None:
                found.append(history)
    return Found(histories=tuple(found))


def _whole(column: Float64, item: int) -> History | None:
    """A column whose entries are all nothing, or as large as the item's own: of one user, or of users who are alike."""
    own = column[item]
    slack = (ROUNDING if (column == 0).any() else NOISY) * own
    if own <= 0 or not ((np.abs(column) < slack) | (np.abs(column - own) < slack)).all():
        return None
    return History(np.flatnonzero(column > own / 2))
