"""The pages' own styles and scripts."""

from __future__ import annotations

from importlib.resources import files


def own_asset(name: str) -> str:
    return (files("fedrec") / "serve" / "assets" / name).read_text(encoding="utf-8")
