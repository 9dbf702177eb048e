"""A published table beside what we get: under the paper's own protocol, and under `strict` where nothing leaks."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from fedrec.evaluation.protocols import find as find_protocol
from fedrec.evaluation.statistics import Summary, summarise
from fedrec.recipes.published import Column, PublishedTable, TableRow, Value
from fedrec.report.model.runs import FinishedRun

SCHEMA = "fedrec.reproduce/1"


@dataclass(frozen=True)
class Entry:
    """One number of the table and ours beside it."""

    published: Value | None
    ours: Summary | None = None
    """Under the paper's protocol."""
    strict: Summary | None = None
    """The same metric under `strict`."""

    @property
    def difference(self) -> float | None:
        """Ours against the published value, in percent of it."""
        if self.published is None or self.ours is None or not self.published.number or math.isnan(self.ours.mean):
            return None
        return 100.0 * (self.ours.mean / float(self.published.number) - 1.0)

    @property
    def points(self) -> dict[str, float]:
        """What a picture shows of it: those of published, ours and strict that there are."""
        found = {} if self.published is None else {"published": float(self.published.number)}
        for name, summary in (("ours", self.ours), ("strict", self.strict)):
            if summary is not None and not math.isnan(summary.mean):
                found[name] = summary.mean
        return found


@dataclass(frozen=True)
class Line:
    """One row of the table on one data set."""

    name: str
    method: str
    entries: tuple[Entry, ...]
    """One a metric of the table."""
    ours: tuple[FinishedRun, ...] = ()
    strict: tuple[FinishedRun, ...] = ()
    absent: str = ""
    """Why there is no value of ours."""
    failures: tuple[str, ...] = ()
    """Runs that failed, named, with the reason."""
    control: bool = False


@dataclass(frozen=True)
class Panel:
    """All rows on one data set."""

    column: Column
    lines: tuple[Line, ...]
    missing: str = ""
    """Which file is missing, and where to put it."""
    banner: str | None = None
    """The leak warning of the paper's protocol."""
    strict_banner: str | None = None
    chance: Mapping[str, float] = field(default_factory=dict)
    """What a random scorer gets under the paper's protocol."""

    @property
    def rows(self) -> tuple[Line, ...]:
        """The paper's rows, without the controls that we add."""
        return tuple(line for line in self.lines if not line.control)

    @property
    def drawn(self) -> list[tuple[Line, dict[str, float]]]:
        """Lines of a picture with their points, by the table's first metric; none where nothing of ours is there."""
        found = [(line, points) for line in self.lines if (points := line.entries[0].points)]
        return found if not self.missing and any("ours" in points for _, points in found) else []


@dataclass(frozen=True)
class Reproduction:
    """A table, made again."""

    table: PublishedTable
    panels: tuple[Panel, ...]
    seeds: tuple[int, ...]
    rounds: int | None
    quick: bool = False
    """Few rounds only: nothing here is a result."""
    waiting: int = 0
    """Runs of the table that are not finished; the others are shown."""

    @property
    def failures(self) -> list[str]:
        return [failure for panel in self.panels for line in panel.lines for failure in line.failures]

    @property
    def absent(self) -> list[tuple[str, str]]:
        """Rows and data sets that could not be run, each once, with the reason."""
        found: dict[tuple[str, str], None] = {}
        for panel in self.panels:
            if panel.missing:
                found[panel.column.label, panel.missing] = None
                continue
            for line in panel.lines:
                if line.absent:
                    found[line.name, line.absent] = None
        return list(found)

    @property
    def file(self) -> str:
        """What files of this table are called."""
        kind, number = self.table.name.split()
        return f"{kind.lower()}{number}" + ("-quick" if self.quick else "")


def strict_name(metric: str) -> str:
    """The metric under `strict` that answers to a published one: the right formula instead of the public code's."""
    return metric.rstrip("!")


def line_of(
    row: TableRow,
    table: PublishedTable,
    column: Column,
    ours: Sequence[FinishedRun],
    strict: Sequence[FinishedRun],
    *,
    absent: str = "",
    failures: Sequence[str] = (),
    control: bool = False,
) -> Line:
    """Published values and runs as one line."""
    published: Sequence[Value | None] = row.published.get(column.key, (None,) * len(table.metrics))
    entries = tuple(
        Entry(
            value,
            summarise([run.test(metric) for run in ours]) if ours else None,
            summarise([run.test(strict_name(metric)) for run in strict]) if strict else None,
        )
        for value, metric in zip(published, table.metrics, strict=True)
    )
    return Line(row.name, row.method, entries, tuple(ours), tuple(strict), absent, tuple(failures), control)


def heading(reproduction: Reproduction) -> str:
    """``fedca Table 2: ...``, marked where it is quick."""
    table = reproduction.table
    quick = f" [QUICK: {reproduction.rounds} rounds, not a result]" if reproduction.quick else ""
    runs = f"{reproduction.waiting} run{'s are' if reproduction.waiting > 1 else ' is'}"
    so_far = f" [so far: {runs} missing]" if reproduction.waiting else ""
    return f"{table.paper} {table.name}: {table.title}{quick}{so_far}"


def reading(reproduction: Reproduction) -> list[str]:
    """How to read the table, one paragraph each."""
    table, found = reproduction.table, []
    if reproduction.quick:
        few = f"at most {reproduction.rounds} rounds instead of {table.rounds or 'as many as the recipe has'}"
        found.append(f"QUICK: {few}; this shows that it runs; it is not a result.")
    if table.kind == "bytes":
        return [
            *found,
            "published: as the paper prints it; ours: bytes counted from the wire encoding of the methods here.",
        ]
    seeds = ", ".join(map(str, reproduction.seeds))
    several = "mean ± sample standard deviation over seeds" if len(reproduction.seeds) > 1 else "seed"
    found.append(
        f"published: as the paper prints it{' (percent, here as fractions)' if table.unit == 'percent' else ''}; ours: "
        f"{several} {seeds} under {table.protocol}; off: ours against published, in percent; strict: the same "
        "method and metric where nothing leaks and the round is chosen on validation."
    )
    if any(metric.endswith("!") for metric in table.metrics):
        found.append("A metric with ! is computed as in the paper's public code; strict has the right formula.")
    found.append("Controls (random, popularity, local) are ours: the paper's table does not have them.")
    return found


def remarks(reproduction: Reproduction) -> list[str]:
    """All that must be known of the table: how to read it, its notes, the flaws of its protocol."""
    table, protocol = reproduction.table, find_protocol(reproduction.table.protocol)
    found = [*reading(reproduction), *table.notes]
    if protocol.flaws and table.kind == "quality":
        found.append(f"{table.protocol} repeats the paper's procedure, flaws included:")
        found += [f"({number}) {flaw}" for number, flaw in enumerate(protocol.flaws, 1)]
    return found
