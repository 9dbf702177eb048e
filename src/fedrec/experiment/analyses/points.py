"""What analyses measure, and how they report their rounds."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from fedrec.core.loop import Progress, Record

OnRound = Callable[[str, Record], None]
SHOWN = ("HR@10/99", "NDCG@10/99", "HR@10", "NDCG@10")
"""Metrics that the analyses report."""


@dataclass(frozen=True)
class Point:
    """One measurement: where, of what, and its value."""

    x: float
    series: str
    metric: str
    value: float


def watch(on_round: OnRound | None, label: str) -> Callable[[Record, Progress], None]:
    def after(record: Record, progress: Progress) -> None:
        if on_round is not None:
            on_round(label, record)

    return after
