"""Which classes a stored value may be made of, and whether a value is what a type hint says.

A file names classes; it never brings them. A name is looked up in a table made from what the reader expects (the
method's own state classes and those that their fields name) and is never imported or followed. Nobody has to enter a
class: the table grows from the state that the method itself starts with.
"""

from __future__ import annotations

import dataclasses
import types
import typing
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Literal

import numpy as np

from fedrec.core.old_names import OLD_NAMES

LARGEST = 1 << 64
"""Integers from a file are smaller than this: a stream of random numbers is named by 64 bits, all else is smaller."""


def state_name(kind: type[Any]) -> str:
    """The name a class is stored under: its own ``state_name``, or what it is called."""
    return str(vars(kind).get("state_name", kind.__name__))


_hints: dict[type[Any], Mapping[str, Any]] = {}


def field_hints(kind: type[Any]) -> Mapping[str, Any]:
    """The type of each field as far as it can be known."""
    if kind not in _hints:
        try:
            _hints[kind] = typing.get_type_hints(kind)
        except Exception:  # a name that is only there for a type checker, or a module that was not imported as one
            _hints[kind] = {}
    return _hints[kind]


@dataclasses.dataclass(frozen=True)
class PlacesIn:
    """What a field of stored state is annotated with whose numbers are places in another field's first axis.

    ``nobody``: which number stands for no place, -1 before the first or 1 past the last; 0 where each is a place.
    """

    other: str
    nobody: int = 0

    def wrong(self, numbers: Any, of: Any) -> str | None:
        """What is wrong with the numbers, as the end of a sentence."""
        return outside(numbers, min(self.nobody, 0), len(of) - 1 + max(self.nobody, 0))


def outside(numbers: Any, low: int, high: int) -> str | None:
    """What is wrong with numbers that are not all from ``low`` to ``high``, as the end of a sentence."""
    wrong = numbers[(numbers < low) | (numbers > high)]
    return f"has {wrong[0]} where {low} to {high} belong" if wrong.size else None


def field_places(kind: type[Any]) -> dict[str, PlacesIn]:
    """The fields that hold places in another one."""
    hints = typing.get_type_hints(kind, include_extras=True) if field_hints(kind) else {}
    extras = {name: getattr(hint, "__metadata__", ()) for name, hint in hints.items()}
    return {name: extra for name, given in extras.items() for extra in given if isinstance(extra, PlacesIn)}


class Kinds:
    """The classes that a file may name."""

    def __init__(self, *parts: Any) -> None:
        """From live values, classes or type hints: their dataclasses, and those of their fields."""
        self._named: dict[str, list[type[Any]]] = {}
        self._add(parts)

    @property
    def names(self) -> list[str]:
        """State names, for a message."""
        return sorted({state_name(kind) for kinds in self._named.values() for kind in kinds})

    def find(self, name: str, hint: Any) -> type[Any] | None:
        """The class of that name that fits where it stands; None where there is no such one."""
        wanted = tuple(mentioned(hint))
        found = [k for k in self._named.get(name, ()) if not wanted or issubclass(k, wanted)]
        return found[0] if len(found) == 1 else None

    def _add(self, parts: Iterable[Any]) -> None:
        for part in parts:
            if isinstance(part, type) and dataclasses.is_dataclass(part):
                self._add_class(part)
            elif isinstance(part, Parts):
                self._add(part.hints.values())
            elif typing.get_args(part):
                self._add(typing.get_args(part))
            elif dataclasses.is_dataclass(part):
                self._add_class(type(part))
                self._add(getattr(part, field.name) for field in dataclasses.fields(part))
            elif isinstance(part, dict):
                self._add(part.values())
            elif isinstance(part, list | tuple):
                self._add(part)

    def _add_class(self, kind: type[Any]) -> None:
        own = state_name(kind)
        if kind in self._named.get(own, ()):
            return
        names = [own, *(old for old, new in OLD_NAMES.items() if new == own)]
        if kind.__module__.partition(".")[0] != "fedrec":  # a method of its user's: 0.1.0 wrote where it lies
            names.append(f"{kind.__module__}:{kind.__qualname__}")
        for name in names:
            self._named.setdefault(name, []).append(kind)
        self._add(field_hints(kind).values())


@dataclasses.dataclass(frozen=True)
class Parts:
    """A dictionary with exactly these keys, each with its own type hint, and any of those that it ``may`` have; or
    None, where ``optional``."""

    hints: Mapping[str, Any]
    optional: bool = False
    may: Mapping[str, Any] = dataclasses.field(default_factory=dict)

    @property
    def known(self) -> Mapping[str, Any]:
        """The hints of all keys."""
        return {**self.hints, **self.may}


def mentioned(hint: Any) -> set[type[Any]]:
    """The dataclasses that a hint names, at any depth of it."""
    if isinstance(hint, type) and dataclasses.is_dataclass(hint):
        return {hint}
    return set().union(*(mentioned(arg) for arg in typing.get_args(hint)))


def fits(value: Any, hint: Any) -> bool:
    """Whether a value read from a file is what a type hint says; a hint that says nothing fits all."""
    if isinstance(hint, Parts):
        if value is None:
            return hint.optional
        return (
            isinstance(value, dict)
            and hint.hints.keys() <= value.keys() <= hint.known.keys()
            and all(fits(one, hint.known[key]) for key, one in value.items())
        )
    if hint is Any:
        return True
    origin, args = typing.get_origin(hint), typing.get_args(hint)
    if origin is typing.Annotated:
        return fits(value, args[0])
    if origin in (typing.Union, types.UnionType):
        return any(fits(value, arg) for arg in args)
    if origin is Literal:
        return isinstance(value, bool | int | str) and value in args
    if hint is None:
        return value is None
    kind = origin or hint
    return _fits_class(value, kind, args) if isinstance(kind, type) else True  # a type variable


def _fits_class(value: Any, kind: type[Any], args: tuple[Any, ...]) -> bool:
    if issubclass(kind, np.ndarray):
        return isinstance(value, np.ndarray)
    if kind is bool:
        return isinstance(value, bool)
    if kind is int:
        return isinstance(value, int) and not isinstance(value, bool) and abs(value) < LARGEST
    if kind is float:
        return isinstance(value, float) or _fits_class(value, int, ())
    if issubclass(kind, np.generic):  # stored as the plain value it holds
        return isinstance(value, bool | int | float | str)
    if issubclass(kind, Mapping):
        return isinstance(value, dict) and (len(args) < 2 or all(fits(entry, args[1]) for entry in value.values()))
    if issubclass(kind, Sequence) and not issubclass(kind, str | bytes):
        return isinstance(value, list | tuple) and _fits_entries(value, kind, args)
    return isinstance(value, kind)


def _fits_entries(value: Sequence[Any], kind: type[Any], args: tuple[Any, ...]) -> bool:
    if issubclass(kind, tuple) and args and args[-1] is not Ellipsis:
        return len(value) == len(args) and all(fits(entry, arg) for entry, arg in zip(value, args, strict=True))
    return not args or all(fits(entry, args[0]) for entry in value)
