"""What the papers give, what is searched and what was measured: YAML files, beside the functions that read them."""

from functools import cache
from importlib.resources import files
from typing import Any


@cache
def contents(*path: str) -> list[dict[str, Any]]:
    """What a file of this folder says; of a folder, what each of its files says, by their names."""
    import yaml

    place = files("fedrec").joinpath("recipes", *path)
    found = sorted(place.iterdir(), key=lambda one: one.name) if place.is_dir() else [place]
    return [yaml.safe_load(one.read_text(encoding="utf-8")) for one in found if one.name.endswith(".yaml")]
