"""Which round is reported, and when training stops early."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Literal


@dataclass(frozen=True)
class Selection:
    """The round with the best value of one metric on one part is the round that is reported."""

    part: Literal["valid", "test"]
    """Choosing on the test part reports the best of many looks at the answer; `strict` never does."""
    metric: str
    patience: int | None = None
    """Stop after so many evaluated rounds without a better value; None trains all rounds."""

    def best(self, history: Sequence[Mapping[str, float]]) -> int:
        """Position of the chosen entry; the earliest of equals. A NaN value never wins over a number."""
        values = [entry[self.metric] for entry in history]
        return max(range(len(values)), key=lambda i: (-math.inf if math.isnan(values[i]) else values[i], -i))

    def stop(self, history: Sequence[Mapping[str, float]]) -> bool:
        """Whether training has gone on long enough without getting better."""
        if self.patience is None or not history:
            return False
        return len(history) - 1 - self.best(history) >= self.patience
