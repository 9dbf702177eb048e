"""What finished runs, their controls and methods beside them must have in common to stand in one table."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from fedrec.core.settings import build
from fedrec.errors import BadInput
from fedrec.experiment.open import settings_here
from fedrec.experiment.prepare import READING
from fedrec.runs.folder import RunFolder
from fedrec.runs.settings import RunSettings, said, spelling

Done = tuple[Path, RunSettings]
"""A finished run: its folder and how it was made."""
ALIKE = ("protocol", *READING, "train_share", "clients", "spread", "copies", "evaluate_users")
"""Settings that decide, beside the data, what is learnt and who is tested."""
ADVICE = "compare runs of the same data, people and test users"


def check_alike(runs: Sequence[Done]) -> None:
    """Runs that are compared learnt from the same and were tested on the same; each is given once."""
    places: dict[Path, Path] = {}
    for path, settings in runs:
        if path.resolve() in places:
            raise BadInput(f"{path} is given twice; give each run once")
        places[path.resolve()] = path
        first, theirs = runs[0]
        for what in ("data", "protocol"):
            there, here = (Path(str(getattr(one, what))).name for one in (theirs, settings))
            if here != there:
                raise BadInput(f"{first} has the {what} {there}, {path} has {here}; compare runs of the same {what}")
        for name in ALIKE:
            there, here = getattr(theirs, name), getattr(settings, name)
            if here != there:
                raise BadInput(f"{path} was run with {_said(name, here)}, {first} with {_said(name, there)}; {ADVICE}")
        before, now = (RunFolder(one).fingerprint()[0] for one in (first, path))
        changed = None if before is None or now is None else before.change_to(now)
        if changed is not None:
            raise BadInput(f"{path} learnt from other data than {first} ({changed}); {ADVICE}")


def of_runs(runs: Sequence[Done], given: Mapping[str, Any]) -> dict[str, Any]:
    """``given``, with what the finished runs have in common; an option that says otherwise is bad input."""
    if not runs:
        return dict(given)
    path, settings = runs[0]
    here = settings_here(RunFolder(path))
    asked = build(RunSettings, {key: given[key] for key in ("data", *ALIKE) if key in given} | {"method": ""}, "run")
    if "data" in given and _place(asked.data) != _place(here.data):
        raise BadInput(f"{path} learnt from {here.data}, and --data is {asked.data}; leave --data out, or the folder")
    for name in ALIKE:
        now, there = getattr(asked, name), getattr(settings, name)
        if name in given and now != there:
            raise BadInput(
                f"{path} was run with {_said(name, there)}, not with {_said(name, now)}; leave one of them out"
            )
    own = {name: getattr(here, name) for name in ("data", "data_dir", *ALIKE)}
    changed = {name: value for name, value in own.items() if value != RunSettings.model_fields[name].default}
    return {**given, **changed, **{name: given[name] for name in ("data_dir",) if name in given}}


def _place(data: str) -> str:
    """A data set's name, or where the file lies."""
    path = Path(data).expanduser()
    return str(path.resolve()) if path.exists() else data


def _said(name: str, value: Any) -> str:
    """``--train-share 0.3``, ``no --clients``."""
    return f"no {spelling(name).flags}" if value is None else " ".join(said(name, value))
