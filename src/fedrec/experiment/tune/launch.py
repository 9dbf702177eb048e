"""Searches carried out: by this process, by several on this machine, or by jobs of a cluster; all share the folder."""

from __future__ import annotations

import json
import logging
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from statistics import fmean
from typing import Any, Protocol

from fedrec.errors import BadInput
from fedrec.experiment.pool import thread_limits
from fedrec.experiment.tune.packed import pack
from fedrec.experiment.tune.study import Budget, Study, plan
from fedrec.experiment.tune.worker import Worker
from fedrec.experiment.worker import own_process
from fedrec.extras import needs
from fedrec.methods.registry import refuse_unknown_elsewhere
from fedrec.report.model.search import Trial

log = logging.getLogger("fedrec.tune")

POLL_SECONDS = 1.0
GRACE = 45.0
"""Seconds that workers have, when time is up, to end the round that they are in."""
AGAIN = 2
"""How often on average a worker process that died is replaced."""

LAUNCHERS = ("process", "submitit")


@dataclass(frozen=True)
class Order:
    """What is to be tuned: enough for any process to find the same searches."""

    methods: tuple[str, ...]
    data: tuple[str, ...]
    given: Mapping[str, Any]
    sets: Mapping[str, Any]
    budget: Budget
    out: Path

    def plan(self) -> list[Study]:
        return plan(self.methods, self.data, self.given, self.sets, self.budget, self.out)

    def as_json(self) -> str:
        return json.dumps(asdict(self), default=str)

    @classmethod
    def from_json(cls, text: str) -> Order:
        plain = json.loads(text)
        plain |= {"budget": Budget(**plain["budget"]), "out": Path(plain["out"])}
        return cls(**{**plain, "methods": tuple(plain["methods"]), "data": tuple(plain["data"])})


class Watcher(Protocol):
    """Sees how far all searches are."""

    def ticks(self, state: State) -> None: ...


@dataclass
class State:
    """How far all searches are, from their folders."""

    studies: Sequence[Study]
    jobs: int
    known: dict[Path, Trial] = field(default_factory=dict)
    trials: dict[Path, list[Trial]] = field(default_factory=dict)

    def look(self) -> State:
        """Read the folders again."""
        self.trials = {study.folder: study.trials(self.known) for study in self.studies}
        return self

    def over(self, study: Study) -> list[Trial]:
        return [trial for trial in self.trials[study.folder] if trial.state != "open"]

    @property
    def total(self) -> int:
        return sum(study.limit for study in self.studies)

    @property
    def done(self) -> int:
        return sum(len(self.over(study)) for study in self.studies)

    @property
    def left_seconds(self) -> float | None:
        """Until all is done: of each search by its own trials, else by all; None where nothing is known."""
        seen = [[trial.seconds for trial in self.over(study)] for study in self.studies]
        every = [seconds for own in seen for seconds in own]
        if not every:
            return None
        pairs = zip(self.studies, seen, strict=True)
        return sum((study.limit - len(own)) * fmean(own or every) for study, own in pairs) / self.jobs


def carry_out(
    order: Order,
    *,
    jobs: int = 1,
    launcher: str = "process",
    watcher: Watcher | None = None,
    start: bool = True,
) -> State:
    """Work on the searches until they are over or the hours are spent; without ``start``, only read them."""
    if launcher not in LAUNCHERS:
        raise BadInput(f"--launcher {launcher!r} is not one; give {' or '.join(LAUNCHERS)}")
    studies = order.plan()
    state = State(studies, jobs)
    if not start:
        return state.look()
    if jobs > 1 or launcher != "process":
        refuse_unknown_elsewhere(study.method for study in studies)
    for method in dict.fromkeys(study.method for study in studies if study.unsearched):
        log.warning(
            "%s: no search space, so its own settings are the only trial; give its class one: "
            'search = {"lr": {"low": 0.001, "high": 0.1, "log": True}}',
            method,
        )
    open_all(studies)
    deadline = float("inf") if order.budget.hours is None else time.monotonic() + 3600 * order.budget.hours

    def tell(*_: Any) -> None:
        if watcher is not None:
            watcher.ticks(state.look())

    if launcher == "submitit":
        _on_cluster(order, jobs, tell)
    elif order.budget.hours == 0:
        pass  # folders and data are ready for workers elsewhere
    elif jobs == 1:
        Worker(studies, deadline, on_trial=tell).run()
    else:
        _side_by_side(order, jobs, deadline, tell)
    return state.look()


def open_all(studies: Sequence[Study]) -> None:
    """Make the folders of searches, with their data: what is missing is bad input, not a failure of every trial."""
    for path, study in {study.packed: study for study in studies}.items():
        pack(path, study.base)
    for study in studies:
        study.open()


def _side_by_side(order: Order, jobs: int, deadline: float, tell: Callable[[], None]) -> None:
    running = [_start(order, jobs, deadline) for _ in range(jobs)]
    again = AGAIN * jobs
    try:
        while running:
            time.sleep(POLL_SECONDS)
            tell()
            if time.monotonic() > deadline + GRACE:
                for child in running:
                    child.kill()  # in a step that takes too long: its trial stays open
            for child in list(running):
                if child.poll() is None:
                    continue
                running.remove(child)
                if child.returncode and again and time.monotonic() < deadline:
                    again -= 1
                    running.append(_start(order, jobs, deadline))
    finally:  # an interrupt: they write where they stand, and end
        for child in running:
            child.terminate()
        for child in running:
            child.wait()


def _start(order: Order, jobs: int, deadline: float) -> subprocess.Popen[str]:
    left = deadline - time.monotonic()
    child = own_process("fedrec.experiment.tune.launch", str(left), limits=thread_limits(jobs))
    assert child.stdin is not None
    child.stdin.write(order.as_json())
    child.stdin.close()
    return child


def _on_cluster(order: Order, jobs: int, tell: Callable[[], None]) -> None:
    """Workers as jobs of a SLURM cluster; the folder must lie where all of its machines see it."""
    needs("submitit", "--launcher submitit")
    import submitit

    executor = submitit.AutoExecutor(folder=str(order.out / "slurm"))
    hours = 24.0 if order.budget.hours is None else order.budget.hours
    executor.update_parameters(timeout_min=int(60 * hours) + 5, name="fedrec-tune")
    sent = [executor.submit(work, order.as_json(), 3600 * hours) for _ in range(jobs)]
    while not all(job.done() for job in sent):
        time.sleep(10 * POLL_SECONDS)
        tell()
    for job in sent:
        job.result()


def work(text: str, seconds: float) -> None:
    """One worker in a process of its own, until all is done, time is up, or it is asked to end."""
    order, asked = Order.from_json(text), []
    parent = os.getppid()
    signal.signal(signal.SIGTERM, lambda *_: asked.append(True))
    Worker(order.plan(), time.monotonic() + seconds, stop=lambda: bool(asked) or os.getppid() != parent).run()


if __name__ == "__main__":
    work(sys.stdin.read(), float(sys.argv[1]))
