"""What a comparison compares: methods, variants of a method, methods of a file, runs that are finished already."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from fedrec.core.settings import plain_value
from fedrec.errors import BadInput
from fedrec.experiment.open import data_now
from fedrec.experiment.prepare import READING
from fedrec.methods.registry import centralised, federated, name_of, names
from fedrec.runs.folder import SETTINGS, RunFolder
from fedrec.runs.settings import RunSettings

OF_THE_DATA = ("data", "data_dir", "protocol", *READING, "train_share", "clients", "spread", "copies")
"""Settings that finished runs and their controls must have in common."""


@dataclass(frozen=True)
class Entrant:
    """One row of the table to be."""

    name: str
    """As the table shows it: ``fedavg``, ``fedavg:lr=0.1``, ``fedavg:FOLDER``; the method is what stands first."""
    method: str
    settings: Mapping[str, Any] = field(default_factory=dict)
    """What the variant sets."""
    done: tuple[tuple[Path, RunSettings], ...] = ()
    """Finished runs; such an entrant is not run again."""


def named(words: Sequence[str]) -> list[str]:
    """Names of methods, with ``all``, ``federated`` and ``centralised`` spelled out."""
    groups: dict[str, Callable[[], list[str]]] = {
        "federated": federated,
        "centralised": centralised,
        "all": lambda: [*federated(), *centralised()],
    }
    return [name for word in words for name in (groups[word]() if word in groups else [word])]


def entrants(words: Sequence[str]) -> list[Entrant]:
    """What the words of a command line name, each once."""
    spelled = named(words)
    folders = [Path(word) for word in spelled if is_folder(word)]
    found = [_named(word) for word in spelled if not is_folder(word)]
    return list({one.name: one for one in [*found, *_finished(folders, {one.method for one in found})]}.values())


def is_folder(word: str) -> bool:
    """Whether a word is the folder of a run and not the name of a method."""
    return word not in names() and (Path(word) / SETTINGS).is_file()


def of_folders(found: Sequence[Entrant]) -> dict[str, Any]:
    """Data and protocol of the first finished run among the entrants; nothing where there is none."""
    runs = [run for one in found for run in one.done]
    if not runs:
        return {}
    path, settings = runs[0]
    own = {key: getattr(settings, key) for key in OF_THE_DATA} | {"data": data_now(RunFolder(path), settings)}
    return {key: value for key, value in own.items() if value != RunSettings.model_fields[key].default}


def _named(word: str) -> Entrant:
    """``fedavg``, ``fedavg:lr=0.1,dim=8``, ``my.py:Mine``, ``my.py:Mine:lr=0.1``."""
    base, colon, text = word.rpartition(":")
    if not colon or "=" not in text:
        name = name_of(word)
        return Entrant(name, name)
    method = name_of(base)
    return Entrant(f"{method}:{text}", method, _settings(text, word))


def _settings(text: str, word: str) -> dict[str, Any]:
    own: dict[str, Any] = {}
    for part in text.split(","):
        key, equals, value = part.partition("=")
        if not equals or not key.strip():
            raise BadInput(f"{word!r} is not a variant; write METHOD:key=value,key=value, for example fedavg:lr=0.1")
        own[key.strip()] = plain_value(value)
    return own


def _finished(folders: Sequence[Path], named: set[str]) -> list[Entrant]:
    """Finished runs; those that differ by their seed alone are one entrant."""
    groups: dict[str, Entrant] = {}
    first: tuple[Path, RunSettings] | None = None
    for path in folders:
        folder = RunFolder.open(path)
        folder.result()  # an unfinished or damaged one, given by name, is bad input
        settings = folder.settings()
        first = first or (path, settings)
        _check_alike(first, (path, settings))
        same = settings.model_copy(update={"seed": 0}).model_dump_json()
        known = {one.name for key, one in groups.items() if key != same}
        name = f"{settings.method}:{path.name}"
        one = groups.get(same, Entrant(f"{settings.method}:{path}" if name in known else name, settings.method))
        groups[same] = replace(one, done=(*one.done, (path, settings)))
    methods = [one.method for one in groups.values()]
    return [
        replace(one, name=one.method) if methods.count(one.method) == 1 and one.method not in named else one
        for one in groups.values()
    ]


def _check_alike(first: tuple[Path, RunSettings], other: tuple[Path, RunSettings]) -> None:
    """Runs that are compared are of one data set and one protocol."""
    for what in ("data", "protocol"):
        theirs, mine = (Path(str(getattr(settings, what))).name for _, settings in (first, other))
        if mine != theirs:
            raise BadInput(
                f"{first[0]} has the {what} {theirs}, {other[0]} has {mine}; compare runs of the same {what}"
            )
