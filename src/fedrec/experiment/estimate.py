"""How long runs will take and how much memory they will hold."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from fedrec.core.reference import Reference
from fedrec.data.sources import SOURCES
from fedrec.memory import MIB
from fedrec.methods.registry import find as find_method
from fedrec.runs.settings import RunSettings

BASE_MB = 700
"""What a process needs before it holds any data."""


@dataclass
class Estimate:
    """How long runs take, from those that have ended: of the same kind where there are any, else of the nearest.

    Of another kind the time of a round counts: controls of one round say little about methods of a hundred.
    """

    seen: list[tuple[tuple[str, str, str], int, float]] = field(default_factory=list)

    def add(self, settings: RunSettings, seconds: float) -> None:
        self.seen.append((_kind(settings), settings.rounds, seconds))

    def of(self, settings: RunSettings) -> float | None:
        """Seconds of one run; None where nothing is known at all."""
        kind = _kind(settings)
        same = [seconds for other, _, seconds in self.seen if other == kind]
        if same:
            return sum(same) / len(same)
        for alike in (2, 1, 0):
            found = [seconds / rounds for other, rounds, seconds in self.seen if other[:alike] == kind[:alike]]
            if found:
                return settings.rounds * sum(found) / len(found)
        return None

    def left(
        self, waiting: Sequence[RunSettings], under_way: Mapping[int, tuple[RunSettings, float, float]], parallel: int
    ) -> float | None:
        """Seconds until all is done; ``under_way``: settings, seconds so far, share of rounds done."""
        total = 0.0
        for settings, elapsed, share in (*under_way.values(), *((one, 0.0, 0.0) for one in waiting)):
            whole = elapsed / share if share > 0.05 else self.of(settings)
            if whole is None:
                return None
            total += max(0.0, whole - elapsed)
        return total / max(1, parallel)


def _kind(settings: RunSettings) -> tuple[str, str, str]:
    return (settings.method, settings.data, settings.protocol)


def expected_mb(settings: RunSettings) -> float:
    """An upper guess at what a run holds: for a federated method, three item tables for every user."""
    kind, source = find_method(settings.method), SOURCES.get(settings.data)
    sizes = [] if source is None else [*source.sizes.values(), *source.reported.values()]
    if not sizes or issubclass(kind, Reference):
        return BASE_MB + settings.memory_mb
    largest = max(size.users * size.items for size in sizes)
    return BASE_MB + settings.memory_mb + 3 * 4 * largest * int(settings.settings.get("dim") or 16) / MIB
