"""What a protocol lays down: split, negatives, candidates, the chosen round, the model and its metrics."""

from __future__ import annotations

import math
import textwrap
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

from fedrec.evaluation.metrics import MetricSet
from fedrec.evaluation.splits import Split


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


@dataclass(frozen=True)
class Rules:
    """How a model is trained and evaluated; see :data:`fedrec.evaluation.protocols.PROTOCOLS`."""

    name: str
    source: str
    """The paper, and whether a point comes from its text or from public code."""
    description: str
    flaws: tuple[str, ...]
    """What is wrong with the numbers made under it, one sentence each; empty where nothing is."""
    split: Split
    """How interactions are divided; the parts of ready-split data take its place."""
    negatives: Literal["train", "all"]
    """Items that are never drawn as training negatives: those trained on (honest), or all a user ever
    touched, held-out items included (leaky)."""
    candidates: int
    """How many sampled items the held-out item is ranked among, beside the full ranking; 0 for none."""
    selection: Selection
    """Which round is reported."""
    evaluated: Literal["local", "download"]
    """The client's model right after local training, or private state with the next download: what a
    deployed client would use."""
    metrics: MetricSet
    paper: str | None = None
    """Name of the paper whose data filters go with this protocol."""
    drop_unseen_targets: bool = False
    """Whether test items that nobody trained on are left out of the mean."""
    mask_valid: bool = True
    """Whether the validation item is left out of the ranking when the test item is evaluated."""
    whole_users: bool = False
    """Whether those evaluated take no part in training: their history is given when they are served."""

    @property
    def leaky(self) -> bool:
        """Whether training negatives reveal what is held out."""
        return self.negatives == "all"

    def prose(self, width: int = 100) -> str:
        """All of it in words, for the terminal and for the foot of a table."""
        parts = [f"{self.name}: {self.description}", f"Source: {self.source}"]
        parts += [f"Flaw {number}: {flaw}" for number, flaw in enumerate(self.flaws, 1)]
        if not self.flaws:
            parts.append("Flaws: none known.")
        return "\n".join(textwrap.fill(part, width, subsequent_indent="  ") for part in parts)
