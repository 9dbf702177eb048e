"""What a page draws: the runs of one method, or of one row of a table, under one name."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import count

import numpy as np

from fedrec.evaluation.statistics import Summary, summarise
from fedrec.report.model.colours import STROKES, on_paper, place
from fedrec.report.model.comparison import Comparison, Group, base_of
from fedrec.report.model.runs import FinishedRun, Float64

Band = list[tuple[int, float, float, float]]
"""Round, and over seeds the lowest, mean and highest value there."""


@dataclass(frozen=True)
class Series:
    """Runs over several seeds; ``number`` is its place among those that have a colour."""

    name: str
    method: str
    group: Group
    runs: tuple[FinishedRun, ...]
    number: int = 0

    @property
    def cls(self) -> str:
        """Classes that give it its colour and stroke; controls are grey."""
        if self.group == "control":
            colour, stroke = "c", self.number % STROKES
        else:
            number, stroke = place(self.number)
            colour = str(number)
        return f"s{colour}" + (f" d{stroke}" if stroke else "")

    @property
    def colour(self) -> str:
        """The same colour on paper."""
        return on_paper(self.number, self.group == "control")

    def summary(self, metric: str) -> Summary:
        return summarise([run.test(metric) for run in self.runs])

    @property
    def seconds(self) -> float:
        """Mean wall-clock seconds of a run."""
        return float(np.mean([run.result["seconds"]["total"] for run in self.runs]))

    @property
    def upload(self) -> float:
        """Mean bytes that a client uploads over the whole training."""
        return float(np.mean([run.result["bytes"]["upload"] * run.result["rounds"] for run in self.runs]))

    @property
    def selected(self) -> float:
        """The selected round; the median over seeds."""
        return float(np.median([run.result["selected_round"] for run in self.runs]))

    def band(self, metric: str) -> Band:
        """Validation over rounds."""
        found: dict[int, list[float]] = {}
        for run in self.runs:
            for number, value in zip(*run.curve(metric), strict=True):
                if math.isfinite(value):
                    found.setdefault(number, []).append(value)
        return [(r, min(found[r]), float(np.mean(found[r])), max(found[r])) for r in sorted(found)]


def series_of(comparison: Comparison) -> list[Series]:
    """The methods of a comparison that have runs, each with its colour."""
    found = [Series(row.method, base_of(row.method), row.group, row.runs) for row in comparison.rows if row.runs]
    return numbered(found)


def numbered(series: Sequence[Series]) -> list[Series]:
    """The same, each with its place among the coloured ones or among the controls."""
    places = {True: count(), False: count()}
    return [replace(one, number=next(places[one.group == "control"])) for one in series]


@dataclass(frozen=True)
class Fate:
    """How users fare with a method against another: shares of users, and means by what the other does for them."""

    worse: float
    same: float
    better: float
    users: int
    served: float
    """Mean of the method among users whose item the other finds."""
    unserved: float
    """Mean of the method among users whose item the other misses."""
    served_users: int


def fate(method: Series, other: Series, metric: str) -> Fate | None:
    """Users one by one, averaged over the seeds that both have; None where users' values were not kept."""
    there = {run.seed: run for run in other.runs}
    pairs = [
        ((run.per_user or {}).get(metric), (there[run.seed].per_user or {}).get(metric))
        for run in method.runs
        if run.seed in there
    ]
    if not pairs or any(mine is None or its is None or len(mine) != len(its) for mine, its in pairs):
        return None
    mine, its = (np.asarray([pair[side] for pair in pairs], np.float64) for side in (0, 1))  # [seeds, users]
    known = ~(np.isnan(mine) | np.isnan(its)).any(axis=0)
    if not known.any():
        return None
    mine, its = mine[:, known], its[:, known]
    change: Float64 = (mine - its).mean(axis=0)
    found = its > 0  # [seeds, users]: a user's item differs from seed to seed where there is no time
    return Fate(
        worse=float((change < -1e-12).mean()),
        same=float((np.abs(change) <= 1e-12).mean()),
        better=float((change > 1e-12).mean()),
        users=int(known.sum()),
        served=float(mine[found].mean()) if found.any() else math.nan,
        unserved=float(mine[~found].mean()) if (~found).any() else math.nan,
        served_users=round(float(found.sum(axis=1).mean())),
    )
