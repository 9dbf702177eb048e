"""Runs a fuzz target under limits of time and memory, and counts what comes of its inputs.

A target makes one damaged input after another and gives each to the code that has to withstand it. An input is
either accepted or refused with the error that is declared for it; any other exception, a death of the process, a
hang or too much memory is unclean. The target works in a process of its own, so that a crash or a hang costs one
input and not the run; every input follows from one number, which is printed with what went wrong.
"""

from __future__ import annotations

import importlib
import multiprocessing
import random
import resource
import signal
import sys
import tempfile
import time
import traceback
from collections import Counter
from dataclasses import dataclass, field
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any, Literal, Protocol

Outcome = Literal["accepted", "refused"]
MIB = 1 << 20
REPORT_SECONDS = 0.5
PREPARE_SECONDS = 600.0
COUNTED = ("accepted", "refused", "unclean")


class Target(Protocol):
    """What is fuzzed. Constructed and used in one process; constructing it must be cheap."""

    doing: str
    """What the present input is, in a few words: shown when it ends badly, and counted."""

    def prepare(self, folder: Path) -> None:
        """Make the sound inputs that are then damaged; ``folder`` is empty and is removed at the end."""

    def attempt(self, draw: random.Random) -> Outcome:
        """Damage one input, give it to the code, say what came of it. All that is random comes from ``draw``.

        The declared refusal is caught here; whatever else is raised counts as unclean.
        """


@dataclass(frozen=True)
class Limits:
    """What a run may cost."""

    count: int = 10_000
    """Inputs."""
    seconds: float = 600.0
    """Time for all of them; what is done by then is reported."""
    memory_mb: int = 1024
    """Memory that inputs may take beyond what the prepared target holds."""
    hang_seconds: float = 60.0
    """Time for one input."""


@dataclass(frozen=True)
class Unclean:
    """An input that ended badly."""

    number: int
    """Repeats it: ``--repeat NUMBER``."""
    doing: str
    what: str


@dataclass
class Report:
    """What came of a run."""

    outcomes: Counter[str] = field(default_factory=Counter)
    by_kind: Counter[str] = field(default_factory=Counter)
    unclean: list[Unclean] = field(default_factory=list)
    peak_mb: float = 0.0
    """Largest memory of the process, all libraries included."""
    grown_mb: float = 0.0
    """The same beyond what it held when the first input came."""
    seconds: float = 0.0

    @property
    def total(self) -> int:
        return sum(self.outcomes.values())

    @property
    def clean(self) -> bool:
        return not self.unclean

    def lines(self, shown: int = 20) -> list[str]:
        found = {name: self.outcomes[name] for name in ("accepted", "refused", "unclean", "hang", "died")}
        rate = self.total / max(self.seconds, 1e-9)
        lines = [
            f"{self.total} inputs in {self.seconds:.0f} s ({rate:.0f} a second): "
            + ", ".join(f"{count} {name}" for name, count in found.items()),
            f"memory: {self.peak_mb:.0f} MiB at most, {self.grown_mb:.0f} MiB of it for inputs",
        ]
        for one in self.unclean[:shown]:
            lines.append(f"--repeat {one.number}: {one.doing}: {one.what}")
        if len(self.unclean) > shown:
            lines.append(f"and {len(self.unclean) - shown} more")
        return lines


def number_of(seed: int, index: int) -> int:
    """The number from which input ``index`` of a run follows."""
    return (seed << 32) + index


def load(path: str) -> Target:
    """The target ``module:Class``."""
    module, _, name = path.partition(":")
    found: Target = getattr(importlib.import_module(module), name)()
    return found


def repeat(path: str, number: int) -> Outcome:
    """Try one input in this process; what is unclean is raised."""
    target = load(path)
    with tempfile.TemporaryDirectory(prefix="fedrec-fuzz-") as folder:
        target.prepare(Path(folder))
        try:
            return target.attempt(random.Random(number))
        finally:
            print(target.doing, file=sys.stderr)


def run(path: str, seed: int, limits: Limits) -> Report:
    """Try inputs until their number or the time is reached; a process that dies or hangs is replaced."""
    report, began, index = Report(), time.monotonic(), 0
    end = began + limits.seconds
    with tempfile.TemporaryDirectory(prefix="fedrec-fuzz-") as folder:
        attempt = 0
        while index < limits.count and time.monotonic() < end:
            attempt += 1
            own = Path(folder) / str(attempt)
            own.mkdir()
            index = _one_process(path, seed, index, limits, end, own, report)
    report.seconds = time.monotonic() - began
    return report


def _one_process(path: str, seed: int, first: int, limits: Limits, end: float, folder: Path, report: Report) -> int:
    """Inputs from ``first`` on, in one process; the first input that is still to be tried."""
    context = multiprocessing.get_context("spawn")
    here, there = context.Pipe(duplex=False)
    at = context.Value("q", first - 1)
    counts = context.Array("q", len(COUNTED))  # shared: a process that dies has told all it did
    worker = context.Process(
        target=_work, args=(path, seed, first, limits, end, str(folder), there, at, counts), daemon=True
    )
    worker.start()
    there.close()
    seen, since, finished, hung = first - 1, time.monotonic(), False, False
    while not finished:
        if here.poll(0.2):
            try:
                finished = _take(here.recv(), report)
                continue
            except EOFError:
                break
        if at.value != seen:
            seen, since = at.value, time.monotonic()
        elif time.monotonic() - since > (limits.hang_seconds if seen >= first else PREPARE_SECONDS):
            hung = True
            worker.kill()
            break
    report.outcomes.update(dict(zip(COUNTED, counts[:], strict=True)))
    if not finished:
        bad = int(at.value)
        worker.join()
        if bad < first:
            raise RuntimeError(f"{path} could not be prepared (exit status {worker.exitcode})")
        what = f"no end after {limits.hang_seconds:g} s" if hung else f"the process died (status {worker.exitcode})"
        report.outcomes["hang" if hung else "died"] += 1
        report.unclean.append(Unclean(number_of(seed, bad), "?", what))
        return bad + 1
    last = int(at.value) + 1
    worker.join()
    return last if last < limits.count and time.monotonic() < end else limits.count


def _take(message: Any, report: Report) -> bool:
    kind, content = message
    if kind == "counts":
        by_kind, peak, grown = content
        report.by_kind += by_kind
        report.peak_mb, report.grown_mb = max(report.peak_mb, peak), max(report.grown_mb, grown)
    elif kind == "unclean":
        report.unclean.append(content)
    return bool(kind == "end")


def _work(
    path: str, seed: int, first: int, limits: Limits, end: float, folder: str, out: Connection, at: Any, counts: Any
) -> None:
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    target = load(path)
    target.prepare(Path(folder))
    held = _peak_mb()
    bound = _data_bytes() + limits.memory_mb * MIB
    resource.setrlimit(resource.RLIMIT_DATA, (bound, resource.RLIM_INFINITY))
    kinds: Counter[str] = Counter()
    last = time.monotonic()

    def send() -> None:
        out.send(("counts", (kinds, _peak_mb(), _peak_mb() - held)))

    for index in range(first, limits.count):
        if time.monotonic() > end:
            break
        at.value = index
        number = number_of(seed, index)
        try:
            outcome: str = target.attempt(random.Random(number))
        except (KeyboardInterrupt, SystemExit):
            raise
        except BaseException as problem:
            outcome = "unclean"
            where = traceback.extract_tb(problem.__traceback__)[-1]
            said = " ".join(str(problem).split())[:200]
            what = f"{type(problem).__name__}: {said} ({Path(where.filename).name}:{where.lineno})"
            out.send(("unclean", Unclean(number, target.doing, what)))
        counts[COUNTED.index(outcome)] += 1
        kinds[f"{target.doing}: {outcome}"] += 1
        if time.monotonic() - last > REPORT_SECONDS:
            send()
            kinds, last = Counter(), time.monotonic()
    send()
    out.send(("end", None))


def _peak_mb() -> float:
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024


def _data_bytes() -> int:
    """Memory that is the process's own to write, as the system counts it."""
    for line in Path("/proc/self/status").read_text(encoding="ascii").splitlines():
        if line.startswith("VmData:"):
            return int(line.split()[1]) * 1024
    return 0
