"""What the secure sums of a round cost, for its record."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from fedrec.secure.course import STEPS, Traffic
from fedrec.secure.layout import Layout


@dataclass
class Costs:
    """What the cohorts of a round cost together."""

    cohorts: int = 0
    repeated: int = 0
    smallest: int = 0
    steps: Any = field(default_factory=lambda: np.zeros((2, len(STEPS))))
    seconds: dict[str, float] = field(default_factory=lambda: {"clients": 0.0, "server": 0.0})

    def add(self, size: int, traffic: Traffic | None = None, seconds: Mapping[str, float] | None = None) -> None:
        """One more cohort, with so many contributions."""
        self.smallest = min(self.smallest, size) if self.cohorts else size
        self.cohorts += 1
        if traffic is not None:
            self.steps += traffic.upload.sum(0), traffic.download.sum(0)
        for who, spent in (seconds or {}).items():
            self.seconds[who] += spent

    def as_dict(self, clients: int, layout: Layout, plain: float) -> dict[str, Any]:
        """For the record: bytes are means per client in the sum."""
        each = self.steps / max(1, clients)
        return {
            "cohorts": self.cohorts,
            "smallest_cohort": self.smallest,
            "repeated": self.repeated,
            "bits": layout.bits,
            "bytes": {
                way: dict(zip(STEPS, each[i].tolist(), strict=True)) for i, way in enumerate(("upload", "download"))
            },
            "plain_upload": plain,
            "seconds": dict(self.seconds),
        }
