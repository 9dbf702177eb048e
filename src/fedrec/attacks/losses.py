"""The loss that rides along with an upload: how much it tells about who sent it."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from fedrec.attacks.contract import AttackCard, Found, Reader, Seen


class Losses(Reader):
    """A node with one user reports that user's loss: longer histories are fitted better (or worse, either way)."""

    name = "losses"
    card = AttackCard(
        title="the size of a history from the loss that is reported for the round's record",
        paper="this project's audit",
        who="server",
        sees="the loss of a node with one client; privacy settings do not cover it",
    )

    def read(self, seen: Sequence[Seen]) -> list[Found | None]:
        losses = [one.rounds[-1].loss for one in seen]
        if not np.isfinite(losses).all() or np.ptp(losses) == 0:
            return [None for _ in seen]
        return [Found(size=-loss) for loss in losses]
