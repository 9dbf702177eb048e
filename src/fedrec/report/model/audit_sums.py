"""The rows of an audit of secure sums as one line a method: what a masked message tells, and what a sum does."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True)
class Told:
    """The most that any attack got in any round, over all seeds."""

    auc: float
    """Whether an item is a client's, either way round: farthest from 0.5, and above it."""
    whose: float
    """Who of the clients has an item; the same."""
    size: float
    """Rank correlation of guessed and true sizes."""


@dataclass(frozen=True)
class SumsSummary:
    """One method."""

    method: str
    message: Told
    sum: Told
    popular: float
    """AUC of the most popular items."""
    attacks: int
    """Guesses that were made of each kind."""


def summarise_sums(rows: Sequence[Any]) -> list[SumsSummary]:
    """Methods in the order in which they were audited."""
    read = [row for row in rows if row.view]
    names = dict.fromkeys(row.method for row in read)
    return [_summary(name, [row for row in read if row.method == name]) for name in names]


def _summary(method: str, rows: list[Any]) -> SumsSummary:
    def values(view: str, name: str) -> list[float]:
        return [row.figures[name] for row in rows if row.view == view and name in row.figures]

    def told(view: str) -> Told:
        size = max(values(view, "size_rank"), default=float("nan"))
        return Told(_farthest(values(view, "auc")), _farthest(values(view, "whose")), size)

    popular = max(values("sum", "popular_auc"), default=float("nan"))
    return SumsSummary(method, told("message"), told("sum"), popular, len(values("message", "auc")))


def _farthest(values: Sequence[float]) -> float:
    return max((max(value, 1 - value) for value in values), default=float("nan"))
