"""What a comparison compares: methods, variants of a method, methods of a file, runs that are finished already."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from fedrec.core.settings import plain_value
from fedrec.errors import BadInput
from fedrec.experiment.alike import Done, check_alike
from fedrec.methods.registry import centralised, federated, name_of, names
from fedrec.runs.files import SETTINGS
from fedrec.runs.folder import RunFolder


@dataclass(frozen=True)
class Entrant:
    """One row of the table to be."""

    name: str
    """As the table shows it: ``fedavg``, ``fedavg:lr=0.1``, ``fedavg:FOLDER``; the method is what stands first."""
    method: str
    settings: Mapping[str, Any] = field(default_factory=dict)
    """What the variant sets."""
    done: tuple[Done, ...] = ()
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
    """What the words of a command line name, each once: ``lr=0.1`` and ``lr=0.10`` are one variant."""
    spelled = named(words)
    folders = [Path(word) for word in spelled if is_folder(word)]
    found: list[Entrant] = []
    for one in (_named(word) for word in spelled if not is_folder(word)):
        if all((one.method, one.settings) != (other.method, other.settings) for other in found):
            found.append(one)
    return list({one.name: one for one in [*found, *_finished(folders, {one.method for one in found})]}.values())


def is_folder(word: str) -> bool:
    """Whether a word is the folder of a run and not the name of a method."""
    return word not in names() and (Path(word) / SETTINGS).is_file()


def finished(found: Sequence[Entrant]) -> list[Done]:
    """The finished runs among the entrants."""
    return [run for one in found for run in one.done]


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
        if key.strip() in own:
            raise BadInput(f"{word!r} gives {key.strip()} twice; give it once")
        own[key.strip()] = plain_value(value)
    return own


def _finished(folders: Sequence[Path], named: set[str]) -> list[Entrant]:
    """Finished runs; those that differ by their seed alone are one entrant."""
    groups: dict[str, Entrant] = {}
    runs: list[Done] = []
    for path in folders:
        folder = RunFolder.open(path)
        folder.result()  # an unfinished or damaged one, given by name, is bad input
        runs.append((path, folder.settings()))
    check_alike(runs)  # before anything is trained beside them
    for path, settings in runs:
        same = settings.model_copy(update={"seed": 0}).model_dump_json()
        known = {one.name for key, one in groups.items() if key != same}
        name = f"{settings.method}:{path.name}"
        one = groups.get(same, Entrant(f"{settings.method}:{path}" if name in known else name, settings.method))
        again = next((other for other, its in one.done if its.seed == settings.seed), None)
        if again is not None:
            raise BadInput(f"{again} and {path} are the same run made twice (seed {settings.seed}); give one of them")
        groups[same] = replace(one, done=(*one.done, (path, settings)))
    methods = [one.method for one in groups.values()]
    return [
        replace(one, name=one.method) if methods.count(one.method) == 1 and one.method not in named else one
        for one in groups.values()
    ]
