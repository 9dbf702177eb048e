"""Where runs stand, read from their folders again and again; nothing is written there."""

from __future__ import annotations

import logging
import os
import shlex
import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from fedrec.deploy.server.pulse import duration, state_of
from fedrec.errors import BadInput
from fedrec.report.model.runs import FinishedRun
from fedrec.runs.files import JOB, RESULT, ROUNDS, SETTINGS
from fedrec.runs.folder import RunFolder
from fedrec.runs.rounds import Log
from fedrec.runs.settings import RunSettings
from fedrec.serve.sources import file_mark

log = logging.getLogger("fedrec.serve")

MOST_RUNS = 2_000
DEEPEST = 5
"""Folders below the one that is followed."""
SILENT = 120.0
"""Seconds without a round, beyond ten times the usual, after which a run may be dead."""


@dataclass
class Followed:
    """One run, as far as it is."""

    path: Path
    settings: RunSettings | None = None
    records: list[dict[str, Any]] = field(default_factory=list)
    result: dict[str, Any] | None = None
    problem: str = ""
    _mark: Any = None
    _log: Log = field(default_factory=Log)
    _said: str = ""

    def look(self) -> None:
        """Read what has changed since the last look."""
        mark = tuple(file_mark(self.path / name) for name in (SETTINGS, ROUNDS, RESULT))
        if mark == self._mark:
            return
        before, self._mark = self._mark, None  # where something is wrong, the next look is a new one
        folder = RunFolder(self.path)
        try:
            if not (self.path / SETTINGS).is_file():
                self.problem = "it has not begun" if self.settings is None else "it is gone"
                return
            if before is None or mark[0] != before[0]:  # another run may have come in its place
                self.settings = folder.settings()
            self._log = folder.log(self._log)
            self.records = self._log.records
            self.result = folder.result() if folder.finished else None
            self._mark, self.problem = mark, ""
        except (BadInput, OSError) as problem:  # also a file between two others, while a run ends
            self.problem = " ".join(str(problem).split())
        except Exception as problem:  # somebody's files, which must not end what is shown of the other runs
            self.problem = self._odd(problem)

    @property
    def rounds(self) -> int:
        return self.settings.rounds if self.settings is not None else 0

    @property
    def done(self) -> int:
        return int(self.records[-1]["round"]) if self.records else 0

    @property
    def share(self) -> float:
        """How much of it is done, from 0 to 1."""
        return 1.0 if self.result is not None else self.done / max(1, self.rounds)

    @property
    def seconds_a_round(self) -> float:
        """Of the last rounds."""
        last = [sum(record["seconds"].values()) for record in self.records[-10:]]
        return sum(last) / len(last) if last else 0.0

    @property
    def left(self) -> float | None:
        """Seconds to the last round, at most; None where that is not known."""
        if self.problem or self.result is not None or not self.records:
            return None
        return self.seconds_a_round * (self.rounds - self.done)

    def state(self) -> str:
        """In a few words that are true."""
        if self.problem:
            return self.problem
        if self.result is not None:
            return "finished"
        if (self.path / JOB).is_file():
            try:
                return state_of(self.path)
            except (BadInput, OSError) as problem:
                return " ".join(str(problem).split())
            except Exception as problem:
                return self._odd(problem)
        quiet = self.silence()
        if quiet > SILENT + 10 * self.seconds_a_round:
            again = f"fedrec run --resume {shlex.quote(str(self.path))}"
            return f"silent for {duration(quiet)}; if it was cut off: {again}"
        return "running"

    def _odd(self, problem: Exception) -> str:
        """What is shown for a failure that nobody foresaw; the log has it once."""
        said = f"it cannot be read ({type(problem).__name__})"
        if said != self._said:
            log.warning("%r: %s", shown(str(self.path)), said)
            self._said = said
        return said

    def silence(self) -> float:
        """Seconds since its last round, or since it began."""
        there = [self.path / name for name in (ROUNDS, SETTINGS)]
        last = max((path.stat().st_mtime for path in there if path.exists()), default=time.time())
        return max(0.0, time.time() - last)

    def as_run(self, metric: str) -> FinishedRun:
        """As reports draw it; while it goes on, the best round so far is the selected one."""
        so_far = [(r["valid"][metric], r["round"]) for r in self.records if metric in (r.get("valid") or {})]
        best = self.result["selected_round"] if self.result is not None else max(so_far)[1]
        return FinishedRun({"selected_round": best}, tuple(self.records))


class Follower:
    """A run's folder, or a folder with runs below it."""

    def __init__(self, path: Path, waits: bool = False) -> None:
        self.path = path
        if not waits and not path.is_dir():
            raise BadInput(f"{path} is not a folder; give a run's folder, or one with runs below it")
        self.one = waits or (path / SETTINGS).is_file()
        self._known: dict[Path, Followed] = {}
        if not waits and not self.runs():
            raise BadInput(f"{path} has no runs below it; give a run's folder, or one with runs below it")

    def runs(self) -> list[Followed]:
        """All runs, looked at."""
        found = [self.path] if self.one else list(run_folders(self.path))
        for path in found:
            self._known.setdefault(path, Followed(path)).look()
        return [self._known[path] for path in found]

    def run(self, name: str) -> Followed | None:
        """The run of this name below the folder; None where there is none."""
        return next((run for run in self.runs() if self.name(run) == name), None)

    def name(self, run: Followed) -> str:
        return shown(run.path.name if self.one else run.path.relative_to(self.path).as_posix())


def shown(name: str) -> str:
    """A file's name as text; of one in another encoding, what can be read of it."""
    return os.fsencode(name).decode("utf-8", "replace")


def run_folders(path: Path) -> Iterator[Path]:
    """Folders of runs below one, in order."""
    count = 0
    for place, folders, files in os.walk(path):
        folders.sort()
        if SETTINGS in files:
            folders.clear()
            count += 1
            yield Path(place)
        elif len(Path(place).relative_to(path).parts) >= DEEPEST:
            folders.clear()
        if count >= MOST_RUNS:
            return
