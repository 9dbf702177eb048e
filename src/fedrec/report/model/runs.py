"""A finished run as reports see it: its result, its rounds and its users, read from its folder."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fedrec.runs.folder import RunFolder

Float64 = NDArray[np.float64]


@dataclass(frozen=True)
class FinishedRun:
    """One run, loaded. Nothing here is computed; :func:`load_run` makes it from a folder."""

    result: Mapping[str, Any]
    """The object that ``fedrec run --json`` writes."""
    rounds: tuple[Mapping[str, Any], ...] = ()
    """The log of rounds, one entry each."""
    users: tuple[str, ...] = ()
    """The data's own user ids, in the order of ``per_user``."""
    per_user: Mapping[str, Float64] | None = None
    """Test value of each metric for every user ``[users]``; None where they were not kept."""
    path: Path | None = None
    variant: str = ""
    """What tables call it, where that is not its method: ``fedavg:lr=0.1``."""

    @property
    def method(self) -> str:
        return self.variant or str(self.result["method"])

    @property
    def seed(self) -> int:
        return int(self.result["seed"])

    @property
    def protocol(self) -> str:
        return str(self.result["protocol"])

    @property
    def rising(self) -> bool:
        """Whether it was best in the last of the rounds that it was given, so that more might have helped."""
        evaluated = sum(bool(entry.get("valid")) for entry in self.rounds)
        return evaluated > 1 and self.result["selected_round"] == self.result["settings"]["rounds"]

    def test(self, metric: str) -> float:
        """The test metric of the selected round; NaN where it was not computed."""
        return float(self.result["metrics"]["test"].get(metric, float("nan")))

    def curve(self, metric: str, part: str = "valid") -> tuple[list[int], list[float]]:
        """The rounds that were evaluated and the metric at each of them."""
        points = points_of(self.rounds, metric, part)
        return [number for number, _ in points], [value for _, value in points]


def points_of(rounds: Iterable[Mapping[str, Any]], metric: str, part: str = "valid") -> list[tuple[int, float]]:
    """The rounds of a log that were evaluated and a metric at each of them."""
    evaluated = [entry for entry in rounds if (entry.get(part) or {}).get(metric) is not None]
    return [(int(entry["round"]), float(entry[part][metric])) for entry in evaluated]


def load_run(path: Path, variant: str = "") -> FinishedRun:
    """Read the folder of a finished run; one that is unfinished or no run's folder is bad input."""
    folder = RunFolder.open(path)
    result, table, rounds = folder.result(), folder.per_user(), tuple(folder.records())
    if table is None:
        return FinishedRun(result, rounds, path=path, variant=variant)
    per_user = {str(name): table[name].to_numpy(np.float64) for name in table.columns if name != "user"}
    return FinishedRun(result, rounds, tuple(table["user"].astype(str)), per_user, path, variant)
