"""Waiting for a run that another process carries out."""

from __future__ import annotations

import signal
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from fedrec.core.loop import Progress, Record
from fedrec.runs.folder import RunFolder
from fedrec.runs.rounds import record_of

OnRound = Callable[[Record, Progress], None]


class RunFailed(RuntimeError):
    """The federation stopped before the end of the run."""


class Watch:
    """Shows rounds as the server writes them."""

    def __init__(self, folder: RunFolder, on_round: OnRound | None) -> None:
        self.folder, self.on_round = folder, on_round
        self.progress = Progress()
        self.seen = len(folder.records())

    def look(self) -> None:
        records = self.folder.records()
        for plain in records[self.seen :]:
            record = record_of(plain)
            self.progress.round = record.round
            self.progress.records.append(record)
            if self.on_round:
                self.on_round(record, self.progress)
        self.seen = max(self.seen, len(records))


@contextmanager
def interruptible() -> Iterator[None]:
    """While a federation runs, a termination signal ends it as Ctrl-C does: everything is stopped first."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return

    def stop(number: int, frame: Any) -> None:
        raise KeyboardInterrupt

    before = signal.signal(signal.SIGTERM, stop)
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, before)
