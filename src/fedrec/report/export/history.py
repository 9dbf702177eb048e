"""What is exported of a run: numbers per round, and in the end those of the selected round.

Validation only while the run goes on: who could follow the test metric round by round would choose by it.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from math import isfinite
from typing import Any, Protocol

from fedrec.runs.settings import RunSettings

Numbers = dict[str, float]


class Sink(Protocol):
    """A tool that takes a run's history. Whatever it raises is its own problem, never the run's."""

    def begin(self, name: str, key: str, settings: RunSettings) -> int:
        """Before the first round; ``key`` is the same for the same run. Returns the last round that it has already."""

    def round(self, number: int, seconds: float, values: Numbers) -> None:
        """A round that ended so many seconds after the run began."""

    def end(self, number: int, values: Numbers) -> None:
        """The run is finished, with the values of its selected round."""

    def close(self) -> None:
        """No more comes now."""


def numbers_of(record: dict[str, Any]) -> Numbers:
    """A round's numbers by name, groups before a slash; what is not finite is left out."""
    found = {"loss": record["loss"], "participants": record["participants"], "missing": len(record["missing"])}
    for group in ("valid", "seconds", "bytes"):
        found |= {f"{group}/{name}": value for name, value in (record.get(group) or {}).items()}
    return _finite(found.items())


def outcome_of(result: dict[str, Any]) -> Numbers:
    """The selected round's metrics, test metrics among them."""
    metrics = result["metrics"]
    return _finite((f"selected/{part}/{name}", value) for part in metrics for name, value in metrics[part].items())


def times_of(records: Iterable[dict[str, Any]]) -> Iterator[float]:
    """Seconds from the beginning to the end of each round."""
    total = 0.0
    for record in records:
        total += sum(record["seconds"].values())
        yield total


def _finite(values: Iterable[tuple[str, Any]]) -> Numbers:
    return {name: float(value) for name, value in values if value is not None and isfinite(value)}
