"""How much losses change from round to round as most nodes say: a mean would follow the one that says anything."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

UNKNOWN = 1.0
"""As much as all of the loss, and so is what is more: no run is settled by it."""


def typical_change(before: Mapping[str, float], now: Mapping[str, float]) -> float:
    """The middle one of the nodes' changes since each trained last, as shares of their present losses; where two are in
    the middle, the larger. A node without a loss says nothing; unknown where no more than half say anything."""
    changes = np.sort([(loss - before[name]) / abs(loss) for name, loss in now.items() if loss and before.get(name)])
    if 2 * len(changes) <= len(now):
        return UNKNOWN
    middle = changes[(len(changes) - 1) // 2 : len(changes) // 2 + 1]
    return float(np.clip(middle[np.abs(middle).argmax()], -UNKNOWN, UNKNOWN))
