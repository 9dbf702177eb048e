"""A process that makes one run after the other, and keeps what they share: imports, compiled kernels, loaded data.

Its parent writes an order a line to its standard input, and reads an answer a line; what runs print goes to standard
error. It ends when its input does, when nobody waits for it any more, or after a run that left it large.
"""

from __future__ import annotations

import gc
import json
import os
import select
import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from fedrec.experiment import run
from fedrec.experiment.jobs import Job, reason_of
from fedrec.experiment.prepare import ASKED, SharedData
from fedrec.memory import resident_mb
from fedrec.runs.files import ROUNDS
from fedrec.runs.settings import HOW_ONLY, RunSettings

LARGE_MB = 2048
"""A worker that holds more than this after a run makes no other: what it could not give back is another's memory."""


def make(
    settings: RunSettings,
    folder: Path,
    new: bool,
    shared: SharedData,
    on_round: run.OnRound | None = None,
    on_start: run.OnStart | None = None,
) -> str | None:
    """One run in its folder, from the beginning or from its checkpoint; gives the reason where it fails."""
    try:
        if new:
            run.execute(settings, folder, on_round, on_start, shared=shared.of(settings))
        else:
            run.resume(folder, on_round, on_start, {name: getattr(settings, name) for name in HOW_ONLY})
    except Exception as problem:
        if os.environ.get("FEDREC_DEBUG"):
            raise
        return reason_of(problem)
    return None


@dataclass(frozen=True)
class UnderWay:
    """A run that a worker is at."""

    job: Job
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


class Worker:
    """A worker as its parent sees it."""

    def __init__(self, handle: subprocess.Popen[str]) -> None:
        self.handle = handle
        self.under_way: UnderWay | None = None
        self.data: tuple[Any, ...] = ()

    @property
    def memory_mb(self) -> float:
        """What it holds now, or is expected to hold soon, whichever is more."""
        now = resident_mb(self.handle.pid)
        return now if self.under_way is None else max(now, self.under_way.expected_mb)

    def shares(self, job: Job) -> int:
        """How many of the settings that decide about data are those of its last run, in order of what they cost."""
        alike = [mine == asked for mine, asked in zip(self.data, _data_of(job), strict=False)]
        return alike.index(False) if False in alike else len(alike)

    def take(self, job: Job, expected_mb: float) -> None:
        """Give it its next run."""
        assert self.handle.stdin is not None
        self.under_way, self.data = UnderWay(job, time.monotonic(), expected_mb), _data_of(job)
        order = {"folder": str(job.folder), "state": job.state, "settings": job.settings.model_dump(mode="json")}
        with suppress(BrokenPipeError):  # it has died: its end is read like any other
            print(json.dumps(order), file=self.handle.stdin, flush=True)

    def answer(self) -> tuple[UnderWay, str | None]:
        """What it has done and, where it failed, why; a worker that died answers nothing, and its status says it."""
        assert self.handle.stdout is not None
        assert self.under_way is not None
        done, self.under_way = self.under_way, None
        line = self.handle.stdout.readline()
        if line:
            said = json.loads(line)
            if said["last"]:
                self.end()
            return done, said["failure"]
        status = self.end()
        return done, f"its process was ended by signal {-status}" if status < 0 else f"exit status {status}"

    def end(self, *, now: bool = False) -> int:
        """Wait for its end, ``now`` or when it has done what it is at, and close what led to it; its exit status."""
        if now:
            self.handle.terminate()
        for channel in (self.handle.stdin, self.handle.stdout):
            assert channel is not None
            with suppress(BrokenPipeError):  # an order that it did not read any more
                channel.close()
        return self.handle.wait()


def _data_of(job: Job) -> tuple[Any, ...]:
    return tuple(str(getattr(job.settings, name)) for name in ASKED)


def started(limits: dict[str, str]) -> Worker:
    """A new worker; ``limits``: threads, in its environment."""
    return Worker(own_process("fedrec.experiment.worker", limits=limits, stdout=subprocess.PIPE))


def own_process(*words: str, limits: dict[str, str], stdout: int | None = None) -> subprocess.Popen[str]:
    """A module as a process that reads its orders; an interrupt reaches its parent alone, which ends it."""
    command, env = [sys.executable, "-m", *words], {**os.environ, **limits}
    return subprocess.Popen(command, stdin=subprocess.PIPE, stdout=stdout, text=True, env=env, start_new_session=True)


def ready(workers: Sequence[Worker], seconds: float) -> list[Worker]:
    """Those that have answered or died, waiting for the first of them if need be, but no longer than this."""
    channels = {worker.handle.stdout: worker for worker in workers if worker.handle.stdout is not None}
    found, _, _ = select.select(list(channels), [], [], seconds)
    return [channels[channel] for channel in found]


def _serve(orders: Any, answer: Callable[[dict[str, Any]], None]) -> None:
    parent, shared = os.getppid(), SharedData()

    def still_wanted(*_: Any) -> None:
        if os.getppid() != parent:  # nobody waits any more: leave the folder to whoever comes next
            os._exit(3)

    for line in orders:
        order = json.loads(line)
        settings, new = RunSettings(**order["settings"]), order["state"] == "new"
        failure = make(settings, Path(order["folder"]), new, shared, still_wanted)
        _give_back()
        large = resident_mb(os.getpid()) > LARGE_MB
        answer({"failure": failure, "last": large})
        if large:
            return


def _give_back() -> None:
    """Memory that the last run held and nobody needs."""
    gc.collect()
    torch = sys.modules.get("torch")
    if torch is not None and torch.cuda.is_initialized():
        torch.cuda.empty_cache()


def main() -> None:
    """Serve until the input ends; answers have the channel that was standard output to themselves."""
    channel = os.fdopen(os.dup(1), "w", encoding="utf-8")
    os.dup2(2, 1)
    _serve(sys.stdin, lambda said: print(json.dumps(said), file=channel, flush=True))


if __name__ == "__main__":
    main()
