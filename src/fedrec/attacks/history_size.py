"""The size of a history: said in the upload, counted from its rows, or told by the loss that rides along."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from fedrec.attacks.contract import Alone, AttackCard, Found, Reader, Seen
from fedrec.attacks.per_item import main_table, size_field, touched


class HistorySize(Alone):
    """A size that rides along, or the rows that changed without those drawn as negatives."""

    name = "size"
    card = AttackCard(
        title="how many items a client has",
        paper="this project's audit",
        who="server",
        sees="one upload of one client and the method's settings",
    )

    def one(self, seen: Seen) -> Found | None:
        size = size_field(seen.rounds[-1])
        if size is not None:
            return Found(size=size)
        table = main_table(seen)
        drawn = float(getattr(seen.method.settings, "negatives", 0))
        return None if table is None else Found(size=float(touched(table).sum()) / (1 + drawn))


class Losses(Reader):
    """A node with one user reports that user's loss: longer histories are fitted better (or worse, either way)."""

    name = "losses"
    card = AttackCard(
        title="the size of a history, from the loss that is reported for the round's record",
        paper="this project's audit",
        who="server",
        sees="the loss of a node with one client; privacy settings do not cover it",
    )

    def read(self, seen: Sequence[Seen]) -> list[Found | None]:
        losses = [one.rounds[-1].loss for one in seen]
        if not np.isfinite(losses).all() or np.ptp(losses) == 0:
            return [None for _ in seen]
        return [Found(size=-loss) for loss in losses]
