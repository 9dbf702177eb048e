"""A search for settings as reports see it: its trials, read from their run folders. Validation values only."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from itertools import accumulate
from pathlib import Path
from typing import Any, Literal

from fedrec.errors import BadInput
from fedrec.recipes.search_spaces import Space
from fedrec.report.model.runs import points_of
from fedrec.runs.atomic import keep_text
from fedrec.runs.files import SETTINGS
from fedrec.runs.folder import RunFolder
from fedrec.runs.sealed import read_sealed_json, sealed_json

ENDED = "ended.json"
"""Of a trial that did not run to its end: that it was pruned or failed, and why."""

State = Literal["complete", "pruned", "failed", "open"]


@dataclass(frozen=True)
class Trial:
    """One run of a search."""

    number: int
    state: State
    settings: Mapping[str, Any]
    """Run settings, with the method's own under ``settings``."""
    curve: tuple[tuple[int, float], ...] = ()
    """Rounds that were evaluated, and the validation metric there."""
    seconds: float = 0.0
    reason: str = ""

    @property
    def own(self) -> Mapping[str, Any]:
        """The method's settings."""
        return dict(self.settings["settings"])

    @property
    def rounds(self) -> int:
        """Rounds that it was given."""
        return int(self.settings["rounds"])

    @property
    def value(self) -> float:
        """The best validation value of any round; minus infinity where there is none."""
        return max((value for _, value in self.curve), default=float("-inf"))


@dataclass(frozen=True)
class Search:
    """All trials of one method on one data set."""

    method: str
    data: str
    metric: str
    space: Space
    trials: tuple[Trial, ...]
    importance: Mapping[str, float] = field(default_factory=dict)

    @property
    def complete(self) -> tuple[Trial, ...]:
        return tuple(trial for trial in self.trials if trial.state == "complete")

    @property
    def best(self) -> Trial | None:
        """The trial with the best validation value that ran to its end; the earliest of equals."""
        return max(self.complete, key=lambda trial: (trial.value, -trial.number), default=None)

    def counts(self) -> dict[str, int]:
        """How many trials are in which state."""
        states: tuple[State, ...] = ("complete", "pruned", "failed", "open")
        return {state: sum(trial.state == state for trial in self.trials) for state in states}


def read_trial(path: Path, metric: str) -> Trial | None:
    """A trial out of its run folder; None where it has not been started."""
    if not (path / SETTINGS).is_file():
        return None
    folder = RunFolder(path)
    state: State = "complete" if folder.finished else "open"
    reason = ""
    if state == "open" and (path / ENDED).is_file():
        ended = read_sealed_json(path / ENDED, must=True)
        state, reason = ("pruned" if ended["state"] == "pruned" else "failed"), str(ended["reason"])
    settings = folder.settings().model_dump(mode="json")
    records = folder.records()
    curve = tuple(sorted(dict(points_of(records, metric)).items()))
    seconds = sum(sum(record["seconds"].values()) for record in records)
    return Trial(int(path.name), state, settings, curve, seconds, reason)


def end_trial(path: Path, state: Literal["pruned", "failed"], reason: str) -> None:
    """Say that a trial is over without a result."""
    keep_text(path / ENDED, sealed_json({"state": state, "reason": reason}))


def read_trials(folder: Path, metric: str, known: dict[Path, Trial] | None = None) -> list[Trial]:
    """All trials of a search that have been started; ``known`` keeps those that are over."""
    known = {} if known is None else known
    found: list[Trial] = []
    for path in sorted(one for one in folder.glob("[0-9]*") if one.name.isdecimal()):
        trial = known.get(path)
        try:
            trial = trial or read_trial(path, metric)
        except BadInput:  # being written by somebody else at this moment, or damaged: its own worker will say so
            continue
        if trial is not None:
            found.append(trial)
            if trial.state != "open":
                known[path] = trial
    return found


def improved(trials: Sequence[Trial]) -> list[tuple[int, float]]:
    """Best value so far by trial number, of those that ran to their end."""
    complete = [trial for trial in trials if trial.state == "complete"]
    return list(zip([one.number for one in complete], accumulate((one.value for one in complete), max), strict=True))
