"""What of a method is searched when it is tuned, as data: ranges with their reasons (``recipes/spaces/*.yaml``), or
what the class of a method of one's own says (``search``).

An entry names its ``methods``; later entries refine earlier ones, as recipes do. A range is ``{low, high, log?, why}``
(whole numbers where both ends are) or ``{choices, why}``. ``fixed`` holds settings of every trial but the first, which
is the paper's recipe as it stands; ``rounds`` is the most that a trial runs; ``device: cuda`` says that a GPU pays off.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from fedrec.errors import BadInput, unknown
from fedrec.methods.registry import find
from fedrec.recipes import contents


@dataclass(frozen=True)
class Range:
    """The values that one setting may take, and why these."""

    key: str
    why: str
    low: float | None = None
    high: float | None = None
    log: bool = False
    choices: tuple[Any, ...] = ()

    @property
    def whole(self) -> bool:
        """Whether it is searched in whole numbers."""
        return isinstance(self.low, int) and isinstance(self.high, int)

    @property
    def ends(self) -> tuple[Any, ...]:
        """Values that must be allowed: all choices, or both ends, and a fraction where it is searched in fractions."""
        if self.choices or self.low is None or self.high is None:
            return self.choices
        return (self.low, self.high) if self.whole else (self.low, self.high, self.low + (self.high - self.low) / 3.14)

    @property
    def size(self) -> float:
        """How many values it has."""
        if self.choices:
            return len(self.choices)
        return (self.high or 0) - (self.low or 0) + 1 if self.whole else math.inf

    def holds(self, value: Any) -> bool:
        """Whether the search could propose this value."""
        if self.choices:
            return value in self.choices
        number = isinstance(value, (int, float)) and not isinstance(value, bool)
        return number and self.low is not None and self.high is not None and self.low <= value <= self.high

    def rounded(self, value: Any) -> Any:
        """A value with three digits, as a person would write it, inside the range.

        >>> Range("lr", "", 0.001, 0.1, log=True).rounded(0.0123456)
        0.0123
        """
        if self.choices or self.whole or self.low is None or self.high is None:
            return value
        return min(max(float(f"{value:.3g}"), float(self.low)), float(self.high))

    def __str__(self) -> str:
        if self.choices:
            return " | ".join(map(str, self.choices))
        return f"{self.low:g} .. {self.high:g}{' (log)' if self.log else ''}"


@dataclass(frozen=True)
class Space:
    """All that is searched for one method."""

    method: str
    ranges: Mapping[str, Range] = field(default_factory=dict)
    fixed: Mapping[str, Any] = field(default_factory=dict)
    rounds: int = 100
    device: str = "cpu"

    @property
    def size(self) -> float:
        """How many different trials there are, the recipe's included."""
        return 1 + math.prod(one.size for one in self.ranges.values()) if self.ranges else 1

    def point(self, settings: Mapping[str, Any]) -> dict[str, Any] | None:
        """The place of a run in this space; None for one that the search could not propose."""
        inside = all(settings.get(key) == value for key, value in self.fixed.items())
        inside &= all(one.holds(settings.get(key)) for key, one in self.ranges.items())
        return {key: settings[key] for key in self.ranges} if inside else None


def _entries() -> list[dict[str, Any]]:
    return [entry for content in contents("spaces") for entry in content["spaces"]]


def space(method: str) -> Space:
    """What is searched for a method; an empty space where nothing is."""
    ranges: dict[str, Range] = {}
    fixed: dict[str, Any] = {}
    about: dict[str, Any] = {}
    for entry in _entries():
        if method in entry["methods"]:
            for key, said in entry.get("settings", {}).items():
                ranges[key] = Range(key, **{**said, "choices": tuple(said.get("choices", ()))})
            fixed |= entry.get("fixed", {})
            about |= {key: entry[key] for key in ("rounds", "device") if key in entry}
    return Space(method, ranges or _own(method), fixed, **about)


def _own(method: str) -> dict[str, Range]:
    """The ranges that a method's class states; what is wrong with them is bad input."""
    kind = find(method)
    fields = kind.Settings.model_fields
    for key, said in kind.search.items():
        if key not in fields:
            raise unknown(f"setting in {method}'s search", key, fields)
        if not _is_range(said):
            forms = '{"low": 0.001, "high": 0.1, "log": True} or {"choices": [1, 3]}'
            raise BadInput(f"{method}'s search for {key} is {said!r}; write it as {forms}")
    return {
        key: Range(key, **{"why": "", **said, "choices": tuple(said.get("choices", ()))})
        for key, said in kind.search.items()
    }


def _is_range(said: Any) -> bool:
    """Whether this is a list of choices, or two numbers in order, the first above 0 where their logarithm counts."""
    if not isinstance(said, Mapping) or not set(said) <= {"low", "high", "log", "choices", "why"}:
        return False
    if "choices" in said:
        return (
            not {"low", "high"} & set(said) and isinstance(said["choices"], list | tuple) and len(said["choices"]) > 0
        )
    low, high = (_number(said.get(end)) for end in ("low", "high"))
    return low < high and (low > 0 or not said.get("log", False))


def _number(value: Any) -> float:
    return float(value) if isinstance(value, int | float) and math.isfinite(value) else math.nan
