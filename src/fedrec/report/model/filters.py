"""What the figure of federated filters shows, as numbers."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Level:
    """A model without rounds: a line across the panels."""

    name: str
    quality: float


@dataclass(frozen=True)
class Course:
    """A run round by round."""

    name: str
    rounds: list[int]
    quality: list[float]
    bytes: list[float]
    """Sent and received by a client until then."""


@dataclass(frozen=True)
class Spot:
    """A run with noise of some scale."""

    name: str
    scale: float
    quality: float


@dataclass(frozen=True)
class Shown:
    """All that the figure shows."""

    metric: str
    levels: list[Level]
    courses: list[Course]
    spots: list[Spot]
