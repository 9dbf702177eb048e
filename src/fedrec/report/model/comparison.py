"""Several runs as one comparison: groups, means, spreads, marks. All tables and figures are made from it."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np

from fedrec.core.reference import Reference
from fedrec.errors import BadInput
from fedrec.evaluation.canary import leak_banner
from fedrec.evaluation.protocols import find as find_protocol
from fedrec.evaluation.rules import Rules
from fedrec.evaluation.statistics import Summary, summarise
from fedrec.evaluation.sums import MetricSums
from fedrec.methods.registry import find as find_method
from fedrec.report.model.columns import canary_metric, main_metric, shown
from fedrec.report.model.runs import FinishedRun
from fedrec.report.model.significance import Verdict, versus

SCHEMA = "fedrec.compare/1"
CONTROLS = ("random", "popularity", "local")
FLOOR = "popularity"
"""The control that a method must beat to be worth anything."""

Group = Literal["federated", "centralised", "control"]
GROUPS: tuple[Group, ...] = ("federated", "centralised", "control")


NOT_YET = "not run yet"
"""The reason of a run that nobody has started or finished."""


@dataclass(frozen=True)
class Failure:
    """A run that gave no result."""

    method: str
    seed: int
    reason: str


@dataclass(frozen=True)
class Cell:
    """One method on one metric."""

    summary: Summary
    best: bool = False
    """The highest mean of a group that has several methods."""
    against_best: Verdict | None = None
    """Against the best of the group; for the best itself, against the runner-up."""
    against_floor: Verdict | None = None
    """Against `popularity`."""
    clear: bool = False
    """Best, and significantly better than every other method of the group."""

    @property
    def tied(self) -> bool:
        """Not the best, but not distinguishable from it."""
        return not self.best and self.against_best is not None and not self.against_best.significant

    @property
    def below_floor(self) -> bool:
        """Not significantly better than `popularity`."""
        return self.against_floor is not None and not self.against_floor.better

    @property
    def mark(self) -> str:
        """``*`` clear winner of its group, ``~`` level with the winner, ``°`` does not beat `popularity`."""
        return ("*" if self.clear else "~" if self.tied else "") + ("°" if self.below_floor else "")


@dataclass(frozen=True)
class Row:
    """One method over its seeds."""

    method: str
    group: Group
    runs: tuple[FinishedRun, ...]
    failures: tuple[Failure, ...]
    cells: Mapping[str, Cell]
    """By metric; empty where every run failed."""

    @property
    def control(self) -> bool:
        return self.group == "control"

    def mean(self, metric: str) -> float:
        """Over its seeds; minus infinity where it is not known."""
        return _mean(self.cells, metric)

    @property
    def rising(self) -> bool:
        """Whether most of its runs were best in their last round."""
        return 2 * sum(run.rising for run in self.runs) > len(self.runs)

    @property
    def seconds(self) -> float:
        """Mean wall-clock seconds of a run."""
        return summarise([run.result["seconds"]["total"] for run in self.runs]).mean

    def bytes(self, way: Literal["upload", "download"]) -> float:
        """Mean bytes per client and round."""
        return summarise([run.result["bytes"][way] for run in self.runs]).mean


@dataclass(frozen=True)
class Comparison:
    """Methods side by side on one data set under one protocol."""

    protocol: Rules
    data: Mapping[str, Any]
    seeds: tuple[int, ...]
    rows: tuple[Row, ...]
    """By group, and within a group by the main metric, best first."""
    chance: Mapping[str, float]
    """What a random scorer gets in expectation, by metric; empty where it is not known."""
    banner: str | None
    """The leak warning, where there is one."""

    @property
    def columns(self) -> tuple[str, ...]:
        return shown(self.protocol)

    @property
    def main(self) -> str:
        return main_metric(self.protocol)

    @property
    def failures(self) -> list[Failure]:
        return [failure for row in self.rows for failure in row.failures]

    def row(self, method: str) -> Row | None:
        return next((row for row in self.rows if row.method == method), None)

    def grouped(self) -> list[tuple[Group, list[Row]]]:
        """The groups that have rows."""
        found = [(group, [row for row in self.rows if row.group == group]) for group in GROUPS]
        return [(group, rows) for group, rows in found if rows]


def compare_runs(
    runs: Iterable[FinishedRun],
    *,
    failures: Iterable[Failure] = (),
    chance: Mapping[str, float] | None = None,
    guesses: float | None = None,
) -> Comparison:
    """Runs of several methods and seeds as one comparison; they must share data and protocol.

    ``guesses``: how many of the users' guesses are independent (:func:`fedrec.evaluation.canary.guesses`).
    """
    found, failed = list(runs), list(failures)
    if not found:
        reasons = "; ".join(f"{f.method} (seed {f.seed}): {f.reason}" for f in failed[:3])
        raise BadInput(f"there is no finished run to compare{': ' + reasons if reasons else ''}")
    first = found[0]
    for run in found:
        for what in ("protocol", "data"):
            if run.result[what] != first.result[what]:
                raise BadInput(
                    f"{run.method} (seed {run.seed}) has {what} {run.result[what]}, {first.method} "
                    f"{first.result[what]}; compare runs of one protocol on one data set"
                )
    protocol = find_protocol(first.protocol)
    names = list(dict.fromkeys([*(run.method for run in found), *(failure.method for failure in failed)]))
    by_method = {
        name: tuple(sorted((run for run in found if run.method == name), key=lambda run: run.seed)) for name in names
    }
    for name, own in by_method.items():
        if len({run.seed for run in own}) < len(own):
            raise BadInput(f"{name} has two runs with the same seed; give one folder for each method and seed")
    groups = {name: group_of(name) for name in names}
    cells = _cells(by_method, groups, shown(protocol), main_metric(protocol))
    rows = [
        Row(name, groups[name], by_method[name], tuple(f for f in failed if f.method == name), cells[name])
        for name in names
    ]
    rows.sort(key=lambda row: (GROUPS.index(row.group), not row.runs, -row.mean(main_metric(protocol))))
    return Comparison(
        protocol=protocol,
        data=first.result["data"],
        seeds=tuple(sorted({run.seed for run in found} | {failure.seed for failure in failed})),
        rows=tuple(rows),
        chance=dict(chance or {}),
        banner=_banner(protocol, by_method.get("local", ()), chance or {}, guesses),
    )


def base_of(name: str) -> str:
    """The method of a row: ``fedavg`` of ``fedavg:lr=0.1``."""
    return name.partition(":")[0]


def group_of(method: str) -> Group:
    """Control, centralised reference or federated method."""
    return "control" if method in CONTROLS else "centralised" if is_central(method) else "federated"


def is_central(method: str) -> bool:
    """Whether a method collects all histories."""
    try:
        return issubclass(find_method(base_of(method)), Reference)
    except Exception:  # a package that was there when the run was made, or a broken one
        return False


def _mean(cells: Mapping[str, Cell], metric: str) -> float:
    value = cells[metric].summary.mean if metric in cells else math.nan
    return -math.inf if math.isnan(value) else value


def _cells(
    runs: Mapping[str, tuple[FinishedRun, ...]], groups: Mapping[str, Group], columns: Sequence[str], main: str
) -> dict[str, dict[str, Cell]]:
    """The cells of every method: all metrics that were computed, marks for those that are shown."""
    cells: dict[str, dict[str, Cell]] = {}
    for name, own in runs.items():
        metrics = list(own[0].result["metrics"]["test"]) if own else []
        cells[name] = {metric: Cell(summarise([run.test(metric) for run in own])) for metric in metrics}
    evaluated = {name: own for name, own in runs.items() if own and (groups[name] != "control" or name == FLOOR)}
    for metric in dict.fromkeys([*columns, main]):
        floor = versus(FLOOR, evaluated, metric) if FLOOR in evaluated else {}
        for group in ("federated", "centralised"):
            members = {name: own for name, own in runs.items() if own and groups[name] == group}
            _mark(cells, members, metric, floor)
    return cells


def _mark(
    cells: dict[str, dict[str, Cell]],
    members: Mapping[str, tuple[FinishedRun, ...]],
    metric: str,
    floor: Mapping[str, Verdict],
) -> None:
    order = sorted((name for name in members if metric in cells[name]), key=lambda n: -_mean(cells[n], metric))
    if not order:
        return
    best = order[0]
    verdicts = versus(best, {name: members[name] for name in order}, metric)
    for name in order:
        verdict = verdicts.get(name)
        clear = False
        if name == best and len(order) > 1 and verdicts:
            verdict = verdicts[order[1]].turned(order[1]) if order[1] in verdicts else None
            clear = len(verdicts) == len(order) - 1 and all(
                other.significant and other.difference < 0 for other in verdicts.values()
            )
        cells[name][metric] = Cell(
            cells[name][metric].summary, name == best and len(order) > 1, verdict, floor.get(name), clear
        )


def _banner(
    protocol: Rules, local: Sequence[FinishedRun], chance: Mapping[str, float], guesses: float | None
) -> str | None:
    metric = canary_metric(protocol)
    if not local or metric not in chance:
        return None
    data = local[0].result["data"]
    sums: MetricSums | dict[str, Any]
    if all((run.per_user or {}).get(metric) is not None for run in local):
        values = np.asarray([(run.per_user or {})[metric] for run in local])  # [seeds, users]
        evaluated = (~np.isnan(values)).sum(axis=0)
        sums = {metric: (np.nansum(values, axis=0) / np.where(evaluated > 0, evaluated, np.nan))}
    else:  # only means left the nodes
        mean = summarise([run.test(metric) for run in local]).mean
        sums = MetricSums({metric: mean * data["users"]}, data["users"])
    single = data["clients"] == data["users"]
    return leak_banner(sums, chance[metric], metric, protocol=protocol.name, single=single, independent=guesses)
