"""The papers' own settings for a method on a data set, as data."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cache
from importlib.resources import files
from typing import Any


@dataclass(frozen=True)
class Recipe:
    """Defaults of a run: ``run`` for the run itself, ``settings`` for the method."""

    run: dict[str, Any] = field(default_factory=dict)
    settings: dict[str, Any] = field(default_factory=dict)
    source: str = ""


@cache
def _defaults() -> list[dict[str, Any]]:
    import yaml

    folder = files("fedrec") / "recipes"
    found: list[dict[str, Any]] = []
    for file in sorted(folder.iterdir(), key=lambda f: f.name):
        if file.name.endswith(".yaml"):
            found += yaml.safe_load(file.read_text(encoding="utf-8")).get("defaults", [])
    return found


def recipe(method: str, data: str, protocol: str, asked: Mapping[str, Any] | None = None) -> Recipe:
    """What the papers give for this method, data set and protocol; later entries refine earlier ones.

    An entry applies when each of its ``methods``, ``data`` and ``protocols`` lists, where present, has
    the name asked for, and when each setting in its ``with`` is among those ``asked`` for, with that value.
    """
    asked = asked or {}
    run: dict[str, Any] = {}
    settings: dict[str, Any] = {}
    sources: list[str] = []
    for entry in _defaults():
        wanted = (("methods", method), ("data", data), ("protocols", protocol))
        named = all(key not in entry or name in entry[key] for key, name in wanted)
        if named and all(asked.get(key) == value for key, value in entry.get("with", {}).items()):
            run |= entry.get("run", {})
            settings |= entry.get("settings", {})
            sources.append(str(entry.get("source", "")))
    return Recipe(run, settings, "; ".join(s for s in sources if s))
