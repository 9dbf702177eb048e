"""Many runs, each in its folder: one after the other in this process, or several at once in worker processes.

A finished run is never repeated, one that was cut off goes on from its checkpoint, and one that fails is named while
the others go on. Runs are started only as far as the memory budget allows.
"""

from __future__ import annotations

import os
import time
from collections.abc import Sequence
from contextlib import ExitStack, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Protocol

from fedrec.errors import BadInput
from fedrec.experiment.estimate import Estimate, expected_mb
from fedrec.experiment.jobs import Job
from fedrec.experiment.prepare import SharedData
from fedrec.experiment.worker import UnderWay, Worker, make, ready, started
from fedrec.memory import available_mb
from fedrec.methods.registry import refuse_unknown_elsewhere
from fedrec.report.model.comparison import NOT_YET
from fedrec.report.model.runs import FinishedRun, load_run
from fedrec.runs.alone import alone
from fedrec.runs.files import RESULT
from fedrec.runs.folder import RunFolder

POLL_SECONDS = 0.5


class Watcher(Protocol):
    """Sees what happens."""

    def begins(self, job: Job, number: int, total: int) -> Any:
        """A run starts; gives a ``cli.progress.Watch``, or nothing, for its rounds (in this process only)."""

    def ends(self, job: Job, seconds: float, failure: str | None, done: int, total: int, left: float | None) -> None:
        """A run has ended; ``left``: seconds that all others still need, where that can be said."""

    def ticks(self, running: Sequence[tuple[Job, int]], done: int, total: int, left: float | None) -> None:
        """Now and then, with the round that each running run is in."""


class Silent:
    """A watcher that shows nothing."""

    def begins(self, job: Job, number: int, total: int) -> None: ...

    def ends(
        self, job: Job, seconds: float, failure: str | None, done: int, total: int, left: float | None
    ) -> None: ...

    def ticks(self, running: Sequence[tuple[Job, int]], done: int, total: int, left: float | None) -> None: ...


def carry_out(
    jobs: Sequence[Job],
    *,
    parallel: int = 1,
    memory_mb: int | None = None,
    watcher: Watcher | None = None,
    start: bool = True,
) -> dict[Path, str]:
    """Run what is not finished, unless nothing is to ``start``; gives the reason why a run has no result by folder.

    Nobody else may make runs beside these meanwhile: two of these at once would take each other's for failed.
    """
    if not start:
        return {job.folder: NOT_YET for job in jobs if job.state != "finished"}
    watcher = watcher or Silent()
    estimate = Estimate()
    for job in jobs:
        if job.state == "finished":
            with suppress(BadInput):  # a damaged one is named when it is read
                estimate.add(job.settings, RunFolder(job.folder).result()["seconds"]["total"])
    open_jobs = [job for job in jobs if job.state != "finished"]
    if parallel > 1:
        refuse_unknown_elsewhere(job.settings.method for job in open_jobs)
    with ExitStack() as held:
        for place in sorted({job.folder.parent for job in open_jobs}):
            held.enter_context(alone(place))
        work = _Pool(open_jobs, len(jobs), parallel, memory_mb, watcher, estimate)
        return work.run() if parallel > 1 else work.in_turn()


def measured(
    jobs: Sequence[Job], *, parallel: int = 1, watcher: Watcher | None = None
) -> tuple[dict[Path, FinishedRun], dict[Path, str]]:
    """Run what is not finished; gives the runs and the reasons of failures by folder. No run at all is bad input."""
    failures = carry_out(jobs, parallel=parallel, watcher=watcher)
    runs = {job.folder: load_run(job.folder) for job in jobs if job.folder not in failures}
    if not runs:
        raise BadInput(f"no run succeeded: {next(iter(failures.values()))}")
    return runs, failures


@dataclass
class _Pool:
    """Runs one after the other here, or in workers side by side within a memory budget; a worker that is through takes
    the next run as it is, still warm."""

    jobs: Sequence[Job]
    total: int
    parallel: int
    memory_mb: int | None
    watcher: Watcher
    estimate: Estimate
    workers: list[Worker] = field(default_factory=list)
    peaks: dict[tuple[str, str], float] = field(default_factory=dict)
    failures: dict[Path, str] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.waiting, self.done = list(self.jobs), self.total - len(self.jobs)
        self.budget = self.memory_mb or round(0.8 * available_mb())

    def in_turn(self) -> dict[Path, str]:
        """All in this process, one after the other."""
        shared = SharedData()
        while self.waiting:
            job, began = self.waiting.pop(0), time.monotonic()
            watch = self.watcher.begins(job, self.done + 1, self.total)
            watching = (watch.round, watch.start) if watch is not None else (None, None)
            try:
                failure = make(job.settings, job.folder, job.state == "new", shared, *watching)
            finally:
                if watch is not None:
                    watch.stop()
            self._tell(job, time.monotonic() - began, failure)
        return self.failures

    def run(self) -> dict[Path, str]:
        try:
            while self.waiting or self._busy():
                self._start_what_fits()
                for worker in ready([worker for worker, _ in self._busy()], POLL_SECONDS):
                    self._ended(worker)
                self.watcher.ticks([(u.job, u.rounds) for _, u in self._busy()], self.done, self.total, self._left())
        finally:  # an interrupt: what runs keeps its last checkpoint
            for worker in self.workers:
                worker.handle.terminate()
            for worker in self.workers:
                worker.end()
        return self.failures

    def _busy(self) -> list[tuple[Worker, UnderWay]]:
        return [(worker, worker.under_way) for worker in self.workers if worker.under_way is not None]

    def _idle(self) -> list[Worker]:
        return [worker for worker in self.workers if worker.under_way is None]

    def _start_what_fits(self) -> None:
        for job in list(self.waiting):
            if len(self._busy()) >= self.parallel:
                return
            need = self.peaks.get((job.settings.method, job.settings.data)) or expected_mb(job.settings)
            if not self._room(need):
                continue  # a smaller one may still fit
            self.waiting.remove(job)
            self._worker(job).take(job, need)
            self.watcher.begins(job, self.done + len(self._busy()), self.total)

    def _room(self, need: float) -> bool:
        """Whether a run fits beside the others; idle workers give way where it otherwise would not."""
        busy = sum(worker.memory_mb for worker, _ in self._busy())
        if self._busy() and busy + need > self.budget:
            return False
        if busy + need + sum(worker.memory_mb for worker in self._idle()) > self.budget:
            for worker in self._idle():
                worker.end(now=True)
                self.workers.remove(worker)
        return True

    def _worker(self, job: Job) -> Worker:
        """One that is idle, of the same data where there is such a one; else a new one."""
        if idle := self._idle():
            return max(idle, key=lambda worker: worker.shares(job))
        self.workers.append(started(thread_limits(self.parallel)))
        return self.workers[-1]

    def _ended(self, worker: Worker) -> None:
        under_way, failure = worker.answer()
        if worker.handle.poll() is not None:
            self.workers.remove(worker)
        job, seconds = under_way.job, time.monotonic() - under_way.began
        if failure is None and not (job.folder / RESULT).is_file():
            failure = "it ended without a result"
        if failure is None:
            result = RunFolder(job.folder).result()
            self.peaks[job.settings.method, job.settings.data] = result["memory"]["peak_mb"]
        self._tell(job, seconds, failure)

    def _tell(self, job: Job, seconds: float, failure: str | None) -> None:
        """A run has ended."""
        if failure is None:
            self.estimate.add(job.settings, seconds)
        else:
            self.failures[job.folder] = failure
        self.done += 1
        self.watcher.ends(job, seconds, failure, self.done, self.total, self._left())

    def _left(self) -> float | None:
        now = time.monotonic()
        under_way = {
            number: (u.job.settings, now - u.began, u.rounds / u.job.settings.rounds)
            for number, (_, u) in enumerate(self._busy())
        }
        return self.estimate.left([job.settings for job in self.waiting], under_way, self.parallel)


def thread_limits(parallel: int) -> dict[str, str]:
    """What a process finds in its environment when it is one of several: its share of the cores, or less where asked.

    Several pools on one machine know nothing of each other; who starts them can say how many threads a process has.
    """
    names = ("FEDREC_THREADS", "OMP_NUM_THREADS", "MKL_NUM_THREADS", "OPENBLAS_NUM_THREADS", "NUMBA_NUM_THREADS")
    share = max(1, (os.cpu_count() or 1) // parallel)
    asked = {name: os.environ.get(name, "") for name in names}
    return {name: str(min(share, int(n)) if n.isdecimal() and int(n) else share) for name, n in asked.items()}
