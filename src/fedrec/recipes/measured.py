"""The stored audit: what was measured of each method, with the command that makes it again."""

from __future__ import annotations

from functools import cache
from importlib.resources import files
from typing import Any


@cache
def _stored() -> dict[str, Any]:
    import yaml

    found: dict[str, Any] = yaml.safe_load((files("fedrec") / "recipes" / "audit.yaml").read_text(encoding="utf-8"))
    return found


def measured(method: str) -> dict[str, Any]:
    """What the stored audit says of a method; empty where it was not audited."""
    found: dict[str, Any] = _stored()["methods"].get(method, {})
    return found


def command() -> str:
    """The command that made the stored audit."""
    return str(_stored()["command"])
