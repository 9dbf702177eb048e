"""From a run's folder to other tools: at once, or beside the run until it ends."""

from __future__ import annotations

import hashlib
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from fedrec.errors import BadInput
from fedrec.report.export.history import Sink, numbers_of, outcome_of, times_of
from fedrec.report.export.mlflow import Mlflow
from fedrec.report.export.tensorboard import TensorBoard
from fedrec.runs.files import SETTINGS
from fedrec.runs.folder import RunFolder

EVERY = 1.0
"""Seconds between two looks at a run that goes on."""


def sinks(tensorboard: Path | None, mlflow: str | None) -> list[Sink]:
    """The tools that were asked for; one that cannot be used is bad input, before anything is trained."""
    found: list[Sink] = [] if tensorboard is None else [TensorBoard(tensorboard)]
    return found if mlflow is None else [*found, Mlflow(mlflow)]


class Export:
    """One run, and one tool that takes its history."""

    def __init__(self, path: Path, sink: Sink) -> None:
        self.path, self.sink = path, sink
        self.done: int | None = None
        """The last round that was handed over; None before the beginning."""
        self.finished = False

    def look(self) -> None:
        """Hand over what is new in the folder."""
        folder = RunFolder(self.path)
        if self.finished or not (self.path / SETTINGS).is_file():
            return
        if self.done is None:
            self.done = self.sink.begin(self.path.resolve().name, key_of(self.path), folder.settings())
        over = folder.finished  # before the records are read: none is missed
        records = folder.records()
        for record, seconds in zip(records, times_of(records), strict=True):
            if record["round"] > self.done:
                self.sink.round(record["round"], seconds, numbers_of(record))
                self.done = record["round"]
        if over:
            result = folder.result()
            self.sink.end(result["selected_round"], outcome_of(result))
            self.finished = True


def key_of(path: Path) -> str:
    """The same for the same run, another one for a new run in a folder of the same name."""
    found = (path / SETTINGS).stat()
    said = f"{path.resolve()} {found.st_ino} {found.st_mtime_ns}"
    return hashlib.sha256(said.encode()).hexdigest()[:24]


def export(path: Path, chosen: Sequence[Sink], follow: bool = False) -> list[int]:
    """Hand a run's history over; with ``follow`` until the run is finished. Rounds that each tool has now."""
    RunFolder.open(path)  # says what is wrong
    exports = [Export(path, sink) for sink in chosen]
    waiting = threading.Event()
    try:
        while True:
            for one in exports:
                one.look()
            if not follow or all(one.finished for one in exports):
                return [one.done or 0 for one in exports]
            waiting.wait(EVERY)
    finally:
        for one in exports:
            one.sink.close()


@contextmanager
def exported(path: Path, chosen: Sequence[Sink], warn: Callable[[str], None]) -> Iterator[None]:
    """While a run goes on in this process: a thread hands over what its folder shows. A tool that fails is left, with
    one line; the run goes on."""
    if not chosen:
        yield
        return
    over = threading.Event()
    threads = [threading.Thread(target=_follow, args=(Export(path, s), over, warn), daemon=True) for s in chosen]
    for thread in threads:
        thread.start()
    try:
        yield
    finally:
        over.set()
        for thread in threads:
            thread.join(30)


def _follow(one: Export, over: threading.Event, warn: Callable[[str], None]) -> None:
    name = type(one.sink).__name__
    try:
        while True:
            last = over.wait(EVERY)
            try:
                one.look()
            except (BadInput, OSError):  # a file between two others, while the run writes
                if last:
                    raise
            if last:
                one.sink.close()
                return
    except Exception as problem:
        why = " ".join(str(problem).split())[:200]
        warn(f"{name} takes no more of this run ({type(problem).__name__}: {why}); `fedrec export` does it later")
