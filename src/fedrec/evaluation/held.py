"""What users are evaluated on, and what their scores must be."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from fedrec.data.ragged import Int32, Int64, Ragged
from fedrec.errors import BadInput

Float32 = NDArray[np.float32]


@dataclass(frozen=True)
class Held:
    """What some users are evaluated on; all of it stays where the users' data is."""

    targets: Ragged
    """Held-out items of each user; a user may have none."""
    masked: Ragged
    """Items of each user that are not ranked: what was trained on and, for the test, the validation item."""
    candidates: Int32 | None = None  # [users, n]
    """Sampled items that the targets are ranked among (targets not included; -1 is no candidate)."""
    numbers: Int64 | None = None  # [n_items]
    """The data's own item numbers, where the ids are numbers; only the published metrics look at them."""

    def __len__(self) -> int:
        return len(self.targets)

    def take(self, users: NDArray[np.integer]) -> Held:
        """The users at these positions, in this order."""
        drawn = None if self.candidates is None else self.candidates[users]
        return Held(self.targets.take(users), self.masked.take(users), drawn, self.numbers)


def require_items(scores: Float32, n_items: int) -> None:
    """Refuse scores that are not ``[users, n_items]``: kernels would read what lies beside them."""
    if scores.ndim != 2 or scores.shape[1] != n_items:
        raise BadInput(f"scores have the shape {list(scores.shape)}; they must be one row a user with {n_items} items")


def require_finite(scores: Float32, who: Int64 | None = None) -> None:
    """Refuse scores ``[users, n_items]`` that no order can be made of; row ``i`` is of the user at ``who[i]``."""
    # one pass without a temporary: a sum is finite only if every term is, save for overflow, checked below
    with np.errstate(all="ignore"):
        fine = np.isfinite(scores @ np.ones(scores.shape[1], scores.dtype))
    for user in np.flatnonzero(~fine):
        if not np.isfinite(scores[user]).all():
            bad = int(np.flatnonzero(~np.isfinite(scores[user]))[0])
            raise BadInput(
                f"the score of item {bad} for the user at position {user if who is None else who[user]} is "
                f"{scores[user, bad]}; "
                "scores must be finite numbers (a smaller learning rate often helps)"
            )
