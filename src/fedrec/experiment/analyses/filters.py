"""Federated filters beside federated training and centralised models: quality over rounds, bytes and noise.

Every measurement is a run in a folder of its own, so that an interrupted analysis goes on where it was and a finished
run is only read.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from itertools import accumulate
from pathlib import Path
from typing import Any

from fedrec.errors import BadInput
from fedrec.experiment import pool
from fedrec.experiment.jobs import Job, once
from fedrec.experiment.resolve import resolve
from fedrec.methods.registry import find as find_method
from fedrec.report.model.filters import Course, Level, Shown, Spot
from fedrec.report.model.runs import FinishedRun

LEVELS = ("ease", "gfcf", "popularity")
"""What everybody's data in one place gives, and what needs no model."""
QUALITY = ("HR@10/99", "HR@10", "F1@10")


@dataclass(frozen=True)
class Asked:
    """What to measure."""

    widths: tuple[int, ...] = (16, 32, 64)
    """k of fedspectral."""
    filter_rounds: int = 8
    trained: tuple[str, ...] = ("fedavg", "fedca")
    rounds: int = 50
    """Rounds of the trained methods."""
    noise: tuple[float, ...] = (0.0, 0.001, 0.003, 0.01, 0.03, 0.1)
    """Scales of the Laplace noise on every coordinate of every upload."""

    def __post_init__(self) -> None:
        if not self.widths or min(self.widths) < 1:
            raise BadInput("fedspectral needs at least one vector; give --ks as 16,32,64")
        if any(scale < 0 for scale in self.noise):
            raise BadInput("noise has no negative scale; give --noise as 0,0.01,0.1")
        for name in self.trained:
            find_method(name)


@dataclass(frozen=True)
class Plan:
    """Runs by what they are for."""

    levels: dict[str, Job]
    courses: dict[str, Job]
    noisy: dict[tuple[str, float], Job]

    @property
    def jobs(self) -> list[Job]:
        """Every run once, the quick ones first."""
        return once((*self.levels.values(), *self.courses.values(), *self.noisy.values()))


def plan(asked: Asked, given: Mapping[str, Any], out: Path) -> Plan:
    """Which runs are needed, and which of them ``out`` has already."""

    def job(method: str, settings: Mapping[str, Any], **run: Any) -> Job:
        said = {**settings, **{key: value for key, value in run.items() if key != "evaluate_every"}}
        name = "-".join([method, *(f"{key}{value}" for key, value in sorted(said.items()))])
        return Job.at(out / name, resolve(method, {**given, **run, "settings": dict(settings)}))

    long: dict[str, Any] = {"rounds": asked.rounds, "evaluate_every": max(1, asked.rounds // 25)}
    courses = {f"fedspectral, k = {k}": job("fedspectral", {"k": k}, rounds=asked.filter_rounds) for k in asked.widths}
    courses["fedease"] = job("fedease", {}, rounds=1)
    courses |= {name: job(name, {}, **long) for name in asked.trained}
    noisy: dict[tuple[str, float], Job] = {}
    for scale in asked.noise if len(asked.noise) > 1 else ():
        own = {"noise": scale} if scale else {}
        middle = sorted(asked.widths)[len(asked.widths) // 2]
        noisy["fedspectral", scale] = job("fedspectral", {"k": middle, **own}, rounds=asked.filter_rounds)
        noisy["fedease", scale] = job("fedease", own, rounds=1)
        if "fedavg" in asked.trained:
            noisy["fedavg", scale] = job("fedavg", own, **long)
    return Plan({name: job(name, {}) for name in LEVELS}, courses, noisy)


def carry_out(plan: Plan, *, parallel: int = 1, watcher: pool.Watcher | None = None) -> tuple[Shown, dict[Path, str]]:
    """Run what is not there yet; gives what the figure shows, and why runs failed (those are left out)."""
    runs, failures = pool.measured(plan.jobs, parallel=parallel, watcher=watcher)
    known = next(iter(runs.values())).result["metrics"]["test"]
    metric = next(name for name in QUALITY if name in known)

    def there(jobs: Mapping[Any, Job]) -> Iterator[tuple[Any, FinishedRun]]:
        return ((name, runs[job.folder]) for name, job in jobs.items() if job.folder in runs)

    return Shown(
        metric,
        [Level(name, run.test(metric)) for name, run in there(plan.levels)],
        [course(name, run, metric) for name, run in there(plan.courses)],
        [Spot(name, scale, run.test(metric)) for (name, scale), run in there(plan.noisy)],
    ), failures


def course(name: str, run: FinishedRun, metric: str) -> Course:
    """A run round by round: test quality there, and the bytes that a client sent and received until then."""
    numbers = [int(entry["round"]) for entry in run.rounds]
    spent = dict(zip(numbers, accumulate(sum(entry["bytes"].values()) for entry in run.rounds), strict=True))
    rounds, quality = run.curve(metric, "test")
    return Course(name, rounds, quality, [spent[number] for number in rounds])
