"""A run that is to be made: its settings, its folder, and how far that folder is."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

from fedrec.errors import BadInput, quoted
from fedrec.methods.registry import find as find_method
from fedrec.runs.folder import RunFolder
from fedrec.runs.new_folder import is_free
from fedrec.runs.settings import HOW_ONLY, RunSettings

State = Literal["new", "unfinished", "finished"]


@dataclass(frozen=True)
class Job:
    """One run of a comparison or of a table."""

    settings: RunSettings
    folder: Path
    state: State
    variant: str = ""
    """What tables call it, where that is not its method."""

    @classmethod
    def at(cls, folder: Path, settings: RunSettings, variant: str = "") -> Job:
        """A run with these settings in this folder, as far as it is there."""
        return cls(settings, folder, folder_state(folder, settings), variant)

    @property
    def name(self) -> str:
        return self.variant or self.settings.method

    @property
    def label(self) -> str:
        return f"{self.name} seed {self.settings.seed}"


class OtherSettings(BadInput):
    """The folder holds another run."""


def folder_state(path: Path, settings: RunSettings) -> State:
    """Whether the folder is free, or holds this very run; anything else in it is bad input."""
    advice = "choose another --out, or remove it"
    if is_free(path):
        return "new"
    try:
        folder = RunFolder.open(path)
    except BadInput:
        raise BadInput(f"{path} is used for something other than a run; {advice}") from None
    there = folder.settings()
    before, now = (s.model_dump(mode="json", exclude=set(HOW_ONLY)) for s in (there, settings))
    before["settings"] = _defaults(settings.method) | before["settings"]  # a setting that came later is at its default
    flat = [{**{k: v for k, v in one.items() if k != "settings"}, **one["settings"]} for one in (before, now)]
    changed = [key for key in {**flat[0], **flat[1]} if flat[0].get(key) != flat[1].get(key)]
    if changed:
        first = f"{changed[0]} is {quoted(flat[0].get(changed[0]))} there, {quoted(flat[1].get(changed[0]))} now"
        more = f" and {len(changed) - 1} more" if len(changed) > 1 else ""
        raise OtherSettings(f"{path} holds a run with other settings ({first}{more}); {advice}")
    return "finished" if folder.finished else "unfinished"


def _defaults(method: str) -> dict[str, Any]:
    """Every setting of the method at its default, as a run folder writes them."""
    fields = find_method(method).Settings.model_fields.items()
    return {name: field.get_default(call_default_factory=True) for name, field in fields if not field.is_required()}


def once(jobs: Iterable[Job]) -> list[Job]:
    """Every run once, where several need the same."""
    return list({job.folder: job for job in jobs}.values())


def reason_of(problem: BaseException) -> str:
    """One line on why a run failed."""
    text = " ".join(str(problem).split())
    if isinstance(problem, BadInput):
        return text
    return f"{type(problem).__name__}: {text}" if text else type(problem).__name__
