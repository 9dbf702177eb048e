"""The papers' own settings for a method on a data set, as data."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from fedrec.errors import BadInput
from fedrec.recipes import contents
from fedrec.runs.yaml_file import plain_content, read_text


@dataclass(frozen=True)
class Recipe:
    """Defaults of a run: ``run`` for the run itself, ``settings`` for the method."""

    run: dict[str, Any] = field(default_factory=dict)
    settings: dict[str, Any] = field(default_factory=dict)
    source: str = ""


def read_recipes(path: Path | None) -> list[dict[str, Any]]:
    """The entries of a file of one's own, such as `fedrec tune` writes; what is no such file is bad input."""
    if path is None:
        return []
    try:
        content = plain_content(read_text(path))
    except (OSError, ValueError) as problem:
        odd = f"it is not YAML of plain values ({problem})"
        why = problem.strerror if isinstance(problem, OSError) else odd
        raise BadInput(f"--recipe {path} cannot be read: {why}; give a file that `fedrec tune` wrote") from None
    entries = content.get("defaults") if isinstance(content, dict) else None
    if not isinstance(entries, list) or not all(_is_entry(entry) for entry in entries):
        raise BadInput(
            f"--recipe {path} holds no recipes; it must have a list `defaults` of entries with `methods`, `data`, "
            "`protocols`, `with`, `run`, `settings` and `source`"
        )
    return entries


def _is_entry(entry: Any) -> bool:
    kinds: dict[str, type] = {
        **dict.fromkeys(("methods", "data", "protocols"), list),
        **dict.fromkeys(("with", "run", "settings"), dict),
        "source": str,
    }
    return isinstance(entry, dict) and all(
        key in kinds and isinstance(value, kinds[key]) for key, value in entry.items()
    )


def recipe(
    method: str,
    data: str,
    protocol: str,
    asked: Mapping[str, Any] | None = None,
    own: Sequence[Mapping[str, Any]] = (),
    *,
    papers: bool = True,
) -> Recipe:
    """What the papers give for this method, data set and protocol; later entries refine earlier ones, ``own`` all.
    Without ``papers``, what ``own`` gives by itself.

    An entry applies when each of its ``methods``, ``data`` and ``protocols`` lists, where present, has
    the name asked for, and when each setting in its ``with`` is among those ``asked`` for, with that value.
    """
    asked = asked or {}
    run: dict[str, Any] = {}
    settings: dict[str, Any] = {}
    sources: list[str] = []
    given = [entry for content in contents() for entry in content.get("defaults", ())] if papers else []
    for entry in (*given, *own):
        wanted = (("methods", method), ("data", data), ("protocols", protocol))
        named = all(key not in entry or name in entry[key] for key, name in wanted)
        if named and all(asked.get(key) == value for key, value in entry.get("with", {}).items()):
            run |= entry.get("run", {})
            settings |= entry.get("settings", {})
            sources.append(str(entry.get("source", "")))
    return Recipe(run, settings, "; ".join(s for s in sources if s))
