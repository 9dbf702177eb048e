"""PIECK: the popular items are found in what moves, without prior knowledge."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from fedrec.attacks.contract import AttackCard, Facts
from fedrec.attacks.pipattack import PipAttack


class Pieck(PipAttack):
    """PIECK-IPE: the items whose rows change most from round to round are the popular ones (popular item mining), and
    the item's row is aligned with theirs. The first round only watches.
    """

    name = "pieck"
    card = AttackCard(
        title="promote a cold item: its row is aligned with the rows that move most",
        paper="Zhang et al., Preventing the popular item embedding based attack in federated recommendations, "
        "ICDE 2024 (PIECK-IPE)",
        who="clients",
        sees="its downloads",
    )

    def __init__(self, facts: Facts) -> None:
        super().__init__(facts)
        self.before: NDArray[np.float32] | None = None
        self.moved = np.zeros(facts.world.n_items)

    def popular(self, table: NDArray[np.float32]) -> NDArray[Any]:
        if self.before is not None and self.before is not table:
            self.moved += np.linalg.norm(table - self.before, axis=1)
        self.before = table
        return np.argsort(-self.moved, kind="stable")[:20]
