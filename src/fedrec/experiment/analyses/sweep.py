"""One setting, several values, all else equal (FedCA Figures 8 to 12, Table 12): metrics over the setting.

Every value and seed is a run in a folder of its own: an interrupted sweep goes on where it was.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from fedrec.errors import BadInput
from fedrec.experiment import pool
from fedrec.experiment.analyses.points import SHOWN, Point
from fedrec.experiment.jobs import Job
from fedrec.experiment.resolve import resolve
from fedrec.runs.settings import RunSettings

PARTS = ("valid", "test")


@dataclass(frozen=True)
class Sweep:
    """The runs of a sweep, by value."""

    key: str
    runs: dict[float, tuple[Job, ...]]

    @property
    def jobs(self) -> list[Job]:
        """All values under one seed first."""
        return [job for under_one_seed in zip(*self.runs.values(), strict=True) for job in under_one_seed]


def plan(
    method: str, key: str, values: Sequence[float], given: Mapping[str, Any], seeds: Sequence[int], out: Path
) -> Sweep:
    """``key`` is a setting of the method or an option of the run (participation, train_share, ...)."""
    values, seeds = tuple(dict.fromkeys(values)), tuple(dict.fromkeys(seeds))
    if len(values) < 2 or not seeds:
        raise BadInput(f"a sweep needs two values or more and a seed; write --vary {key or 'KEY'}=0.1,0.5,1")

    def job(value: float, seed: int) -> Job:
        asked = {**given, "seed": seed, "settings": dict(given.get("settings", {}))}
        if key in RunSettings.model_fields and key not in ("method", "settings", "seed"):
            asked[key] = value
        else:
            asked["settings"][key] = value
        return Job.at(out / f"{method}-{key}{value:g}-seed{seed}", resolve(method, asked))

    return Sweep(key, {value: tuple(job(value, seed) for seed in seeds) for value in values})


def carry_out(
    sweep: Sweep, *, parallel: int = 1, watcher: pool.Watcher | None = None
) -> tuple[list[Point], dict[Path, str]]:
    """Run what is not there yet; metrics of the selected round (mean over seeds) by value, and why runs failed."""
    runs, failures = pool.measured(sweep.jobs, parallel=parallel, watcher=watcher)
    points: list[Point] = []
    for value, jobs in sweep.runs.items():
        results = [runs[job.folder].result for job in jobs if job.folder in runs]
        for part in PARTS if results else ():
            for metric in (name for name in SHOWN if name in results[0]["metrics"][part]):
                mean = sum(float(result["metrics"][part][metric]) for result in results) / len(results)
                points.append(Point(value, part, metric, mean))
    return points, failures
