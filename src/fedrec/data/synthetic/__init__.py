"""Worlds made by code: always there, of any size, some with a known answer."""

from __future__ import annotations

import inspect
from collections.abc import Callable

from fedrec.data.interactions import Interactions
from fedrec.data.synthetic.demo import demo
from fedrec.data.synthetic.planted import PlantedAnswer, planted, planted_answer
from fedrec.data.synthetic.scalable import scalable
from fedrec.errors import BadInput, unknown

__all__ = ["WORLDS", "PlantedAnswer", "demo", "planted", "planted_answer", "scalable", "world"]

WORLDS: dict[str, Callable[..., Interactions]] = {"demo": demo, "planted": planted, "scale": scalable}
"""Worlds by the name that ``--data`` takes."""


def world(name: str, seed: int = 0) -> Interactions:
    """A world by name, with its options behind a colon: ``scale:users=1000,items=500,interactions=20000``."""
    kind, _, text = name.partition(":")
    if kind not in WORLDS:
        raise unknown("world", kind, WORLDS)
    make = WORLDS[kind]
    options: dict[str, int | float] = {"seed": seed}
    known = inspect.signature(make).parameters
    for part in filter(None, (part.strip() for part in text.split(","))):
        key, equals, value = part.partition("=")
        if not equals:
            raise BadInput(f"{name!r}: {part!r} is not 'option=number'")
        if key not in known:
            raise unknown(f"option of {kind}", key, known)
        whole = known[key].annotation == "int"
        try:
            options[key] = int(value.replace("_", "")) if whole else float(value)
        except ValueError:
            number = "a whole number" if whole else "a number"
            raise BadInput(f"{name!r}: {key} must be {number}, not {value!r}") from None
    return make(**options)
