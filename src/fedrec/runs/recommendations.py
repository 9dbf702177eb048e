"""A list of recommended items, out of scores."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from fedrec.errors import BadInput


@dataclass(frozen=True)
class Recommendation:
    """One recommended item."""

    rank: int
    item: str
    title: str | None
    score: float


def best_items(scores: Any, owned: Any, item_ids: Any, titles: Any, k: int) -> list[Recommendation]:
    """The ``k`` best of ``scores`` ``[n_items]``, none of which is in ``owned``; ``titles`` may be None."""
    if k < 1:
        raise BadInput(f"k is {k}; ask for at least 1 item")
    own = np.array(scores, np.float64)
    own[owned] = -np.inf
    best = np.argsort(-own, kind="stable")[: min(k, int(np.isfinite(own).sum()))]
    return [
        Recommendation(place + 1, str(item_ids[i]), None if titles is None else str(titles[i]), float(own[i]))
        for place, i in enumerate(best)
    ]
