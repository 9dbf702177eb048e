"""The stored audit: what was measured of each method, with the command that makes it again."""

from __future__ import annotations

from typing import Any

from fedrec.recipes import contents


def measured(method: str) -> dict[str, Any]:
    """What the stored audit says of a method; empty where it was not audited."""
    found: dict[str, Any] = contents("audit.yaml")[0]["methods"].get(method, {})
    return found


def command() -> str:
    """The command that made the stored audit."""
    return str(contents("audit.yaml")[0]["command"])
