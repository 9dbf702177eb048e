"""What a guarantee costs: quality over epsilon and over the number of users, bytes and seconds of secure sums.

Every measurement is a run in a folder of its own: those that are there already are read, not run again.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from fedrec.errors import BadInput
from fedrec.evaluation.protocols import find as find_protocol
from fedrec.experiment import pool
from fedrec.experiment.analyses.points import Point
from fedrec.experiment.fitting import fitting
from fedrec.experiment.jobs import Job, once
from fedrec.experiment.resolve import resolve
from fedrec.methods.registry import find
from fedrec.report.model.runs import FinishedRun

QUALITY = ("HR@10/99", "HR@10")
"""Among sampled candidates where the protocol has them."""
FLOOR = "popularity"


@dataclass(frozen=True)
class Asked:
    """What to measure."""

    method: str = "fedease"
    epsilons: tuple[float, ...] = (1.0, 2.0, 4.0, 8.0, 16.0)
    copies: tuple[int, ...] = (1, 3, 10)
    """How often every user is there, for quality over the number of users."""
    at: float = 1.0
    """Epsilon for that."""

    def __post_init__(self) -> None:
        if not self.epsilons or min(self.epsilons) <= 0 or self.at <= 0:
            raise BadInput("epsilon is above 0; give --epsilons as 1,2,4,8")
        if any(copy < 1 for copy in self.copies):
            raise BadInput("give --copies as 1,3,10; 1 is the data as it is")


Measured = dict[str, Any]
"""One run of the analysis, by the columns of :func:`formats`."""


@dataclass(frozen=True)
class Plan:
    """Runs by what they show."""

    plain: Job
    floor: Job
    hidden: Job
    """Secure sums without noise."""
    by_epsilon: dict[float, Job]
    by_copies: dict[int, Job]
    quality: str
    """The metric that is shown."""

    @property
    def jobs(self) -> list[Job]:
        return once((self.floor, self.plain, self.hidden, *self.by_epsilon.values(), *self.by_copies.values()))


def plan(asked: Asked, given: Mapping[str, Any], out: Path) -> Plan:
    """Which runs are needed, and which of them ``out`` has already."""
    open_runs = {key: value for key, value in given.items() if key != "delta"}  # it belongs to a budget
    users_first = {key: value for key, value in open_runs.items() if key not in ("secure", "settings")}

    def job(name: str, method: str, own: Mapping[str, Any], **run: Any) -> Job:
        return Job.at(out / name, resolve(method, {**own, **run}))

    def private(epsilon: float, copies: int) -> Job:
        name = f"{asked.method}-epsilon{epsilon:g}-copies{copies}"
        return job(name, asked.method, given, secure=True, epsilon=epsilon, copies=copies)

    plain = job(asked.method, asked.method, open_runs)
    known = find_protocol(plain.settings.protocol).metrics.names
    return Plan(
        plain,
        job(FLOOR, FLOOR, fitting(find(FLOOR), users_first)),
        job(f"{asked.method}-secure", asked.method, open_runs, secure=True),
        {epsilon: private(epsilon, 1) for epsilon in asked.epsilons},
        {copies: private(asked.at, copies) for copies in asked.copies},
        next(name for name in QUALITY if name in known),
    )


def carry_out(
    planned: Plan, *, parallel: int = 1, watcher: pool.Watcher | None = None
) -> tuple[list[Measured], dict[str, list[Point]], dict[Path, str]]:
    """Run what is not there yet; gives a row for each run, the curves by what they run over, and failures."""
    runs, failures = pool.measured(planned.jobs, parallel=parallel, watcher=watcher)
    quality = planned.quality
    rows = {folder: measured(folder.name, run, quality) for folder, run in runs.items()}

    def curve(jobs: Mapping[Any, Job]) -> list[Point]:
        there = {x: rows[job.folder][quality] for x, job in jobs.items() if job.folder in rows}
        return [Point(float(x), "private", quality, value) for x, value in there.items()]

    over = {
        "epsilon": curve(planned.by_epsilon),
        "users": curve({rows[j.folder]["users"]: j for j in planned.by_copies.values() if j.folder in rows}),
    }
    for series, level in (("no noise", planned.plain), (FLOOR, planned.floor)):
        if level.folder in rows:
            for points in over.values():
                places = sorted({point.x for point in points})
                points += [Point(x, series, quality, rows[level.folder][quality]) for x in places]
    return list(rows.values()), over, failures


def measured(label: str, run: FinishedRun, quality: str) -> Measured:
    """What one run says."""
    result = run.result
    secure = result.get("secure") or {}
    seconds = secure.get("seconds", {})
    card = result.get("privacy_card") or {}
    upload = float(result["bytes"]["upload"])
    return {
        "run": label,
        "users": int(result["data"]["users"]),
        "epsilon": card.get("epsilon"),  # as the run states it; None without noise
        quality: run.test(quality),
        "up_bytes": upload,  # of a client in a round
        "plain_up_bytes": float(secure.get("plain_upload", upload)),
        "run_seconds": float(result["seconds"]["total"]),
        "clients_seconds": float(seconds.get("clients", 0.0)),  # of all clients together for secure sums, a round
        "server_seconds": float(seconds.get("server", 0.0)),
    }


COSTS = {
    "up_bytes": ".0f", "plain_up_bytes": ".0f", "run_seconds": ".1f", "clients_seconds": ".2f", "server_seconds": ".2f",
}  # fmt: skip


def formats(quality: str) -> dict[str, str]:
    """How the columns are written, in order."""
    return {"run": "", "users": "", "epsilon": ".4g", quality: ".4f", **COSTS}


def table(rows: Sequence[Measured], quality: str) -> list[list[str]]:
    """The rows as text, in the order of :func:`formats`."""
    return [
        ["-" if row[name] is None else format(row[name], form) for name, form in formats(quality).items()]
        for row in rows
    ]
