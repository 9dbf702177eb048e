"""Many runs, each in its folder: one after the other in this process, or several at once in processes of their own.

A finished run is never repeated, one that was cut off goes on from its checkpoint, and one that fails is named while
the others go on. Processes are started only as far as the memory budget allows.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol

from fedrec.errors import BadInput
from fedrec.experiment import run
from fedrec.experiment.estimate import Estimate, available_mb, expected_mb, resident_mb
from fedrec.experiment.jobs import Job, reason_of
from fedrec.runs.folder import RESULT, ROUNDS, RunFolder
from fedrec.runs.settings import RunSettings

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
    jobs: Sequence[Job], *, parallel: int = 1, memory_mb: int | None = None, watcher: Watcher | None = None
) -> dict[Path, str]:
    """Run what is not finished; gives the reason of each failure by folder."""
    watcher = watcher or Silent()
    estimate = Estimate()
    for job in jobs:
        if job.state == "finished":
            with suppress(BadInput):  # a damaged one is named when it is read
                estimate.add(job.settings, RunFolder(job.folder).result()["seconds"]["total"])
    open_jobs = [job for job in jobs if job.state != "finished"]
    if parallel <= 1:
        return _in_turn(open_jobs, len(jobs), watcher, estimate)
    return _Pool(open_jobs, len(jobs), parallel, memory_mb, watcher, estimate).run()


def _in_turn(jobs: Sequence[Job], total: int, watcher: Watcher, estimate: Estimate) -> dict[Path, str]:
    failures: dict[Path, str] = {}
    done = total - len(jobs)
    for place, job in enumerate(jobs):
        watch = watcher.begins(job, done + 1, total)
        began, failure = time.monotonic(), None
        watching = (watch.round, watch.start) if watch is not None else (None, None)
        try:
            _run(job.settings, job.folder, job.state == "new", *watching)
        except Exception as problem:
            if os.environ.get("FEDREC_DEBUG"):
                raise
            failure = failures[job.folder] = reason_of(problem)
        finally:
            if watch is not None:
                watch.stop()
        seconds = time.monotonic() - began
        if failure is None:
            estimate.add(job.settings, seconds)
        done += 1
        left = estimate.left([other.settings for other in jobs[place + 1 :]], {}, 1)
        watcher.ends(job, seconds, failure, done, total, left)
    return failures


def _run(settings: RunSettings, folder: Path, new: bool, *watching: Any) -> None:
    if new:
        run.execute(settings, folder, *watching)
    else:
        run.resume(folder, *watching)


@dataclass
class _Process:
    job: Job
    handle: subprocess.Popen[str]
    began: float
    expected_mb: float

    @property
    def rounds(self) -> int:
        """Rounds that its log has."""
        try:
            with open(self.job.folder / ROUNDS, "rb") as file:
                return sum(1 for _ in file)
        except OSError:
            return 0

    @property
    def memory_mb(self) -> float:
        """What it holds now, or is expected to hold soon, whichever is more."""
        return max(self.expected_mb, resident_mb(self.handle.pid))


class _Pool:
    """Processes side by side within a memory budget."""

    def __init__(
        self,
        jobs: Sequence[Job],
        total: int,
        parallel: int,
        memory_mb: int | None,
        watcher: Watcher,
        estimate: Estimate,
    ) -> None:
        self.waiting = list(jobs)
        self.total, self.done = total, total - len(jobs)
        self.parallel = parallel
        self.budget = memory_mb or round(0.8 * available_mb())
        self.watcher, self.estimate = watcher, estimate
        self.processes: list[_Process] = []
        self.peaks: dict[tuple[str, str], float] = {}
        self.failures: dict[Path, str] = {}

    def run(self) -> dict[Path, str]:
        try:
            while self.waiting or self.processes:
                self._start_what_fits()
                time.sleep(POLL_SECONDS)
                for process in list(self.processes):
                    if process.handle.poll() is not None:
                        self._ended(process)
                self.watcher.ticks([(p.job, p.rounds) for p in self.processes], self.done, self.total, self._left())
        finally:  # an interrupt: what runs keeps its last checkpoint
            for process in self.processes:
                process.handle.terminate()
            for process in self.processes:
                process.handle.wait()
        return self.failures

    def _start_what_fits(self) -> None:
        held = sum(process.memory_mb for process in self.processes)
        for job in list(self.waiting):
            if len(self.processes) >= self.parallel:
                return
            need = self.peaks.get((job.settings.method, job.settings.data)) or expected_mb(job.settings)
            if self.processes and held + need > self.budget:
                continue  # a smaller one may still fit
            self.waiting.remove(job)
            self.processes.append(self._start(job, need))
            held += need
            self.watcher.begins(job, self.done + len(self.processes), self.total)

    def _start(self, job: Job, need: float) -> _Process:
        handle = subprocess.Popen(
            [sys.executable, "-m", "fedrec.experiment.pool", str(job.folder), job.state],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            env={**os.environ, **thread_limits(self.parallel)},
            start_new_session=True,  # an interrupt reaches us alone, and we end it
        )
        assert handle.stdin is not None
        handle.stdin.write(job.settings.model_dump_json())
        handle.stdin.close()
        return _Process(job, handle, time.monotonic(), need)

    def _ended(self, process: _Process) -> None:
        self.processes.remove(process)
        assert process.handle.stdout is not None
        said = process.handle.stdout.read().strip().splitlines()
        process.handle.stdout.close()
        job, seconds, status = process.job, time.monotonic() - process.began, process.handle.returncode
        failure = None
        if status or not (job.folder / RESULT).is_file():
            killed = f"its process was ended by signal {-status}" if status < 0 else f"exit status {status}"
            failure = self.failures[job.folder] = said[-1] if said and status > 0 else killed
        else:
            self.estimate.add(job.settings, seconds)
            result = RunFolder(job.folder).result()
            self.peaks[job.settings.method, job.settings.data] = result["memory"]["peak_mb"]
        self.done += 1
        self.watcher.ends(job, seconds, failure, self.done, self.total, self._left())

    def _left(self) -> float | None:
        now = time.monotonic()
        under_way = {
            number: (p.job.settings, now - p.began, p.rounds / p.job.settings.rounds)
            for number, p in enumerate(self.processes)
        }
        return self.estimate.left([job.settings for job in self.waiting], under_way, self.parallel)


def thread_limits(parallel: int) -> dict[str, str]:
    """What a process finds in its environment when it is one of several: its share of the cores, or less where asked.

    Several pools on one machine know nothing of each other; who starts them can say how many threads a process has.
    """
    names = ("FEDREC_THREADS", "OMP_NUM_THREADS", "MKL_NUM_THREADS", "OPENBLAS_NUM_THREADS", "NUMBA_NUM_THREADS")
    share = max(1, (os.cpu_count() or 1) // parallel)
    limits = dict.fromkeys(names, share)
    for name in names:
        asked = os.environ.get(name, "")
        if asked.isdecimal() and int(asked) > 0:
            limits[name] = min(share, int(asked))
    return {name: str(limit) for name, limit in limits.items()}


def _child(folder: Path, state: str) -> int:
    """One run in a process of its own: settings come as JSON, the reason of a failure goes out as one line."""
    parent = os.getppid()
    settings = RunSettings(**json.loads(sys.stdin.read()))

    def still_wanted(*_: Any) -> None:
        if os.getppid() != parent:  # nobody waits any more: leave the folder to whoever comes next
            os._exit(3)

    try:
        _run(settings, folder, state == "new", still_wanted)
    except Exception as problem:
        if os.environ.get("FEDREC_DEBUG"):
            raise
        print(reason_of(problem), flush=True)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(_child(Path(sys.argv[1]), sys.argv[2]))
