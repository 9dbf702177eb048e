"""Waiting for a run that another process carries out."""

from __future__ import annotations

from collections.abc import Callable

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
        self.log = folder.log()
        self.seen = len(self.log.records)

    def look(self) -> None:
        self.log = self.folder.log(self.log)
        records = self.log.records
        for plain in records[self.seen :]:
            record = record_of(plain)
            self.progress.round = record.round
            self.progress.records.append(record)
            if self.on_round:
                self.on_round(record, self.progress)
        self.seen = max(self.seen, len(records))
