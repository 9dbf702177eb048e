"""Nested state (dataclasses, dicts, arrays) as a flat table of arrays and back, for files.

Nothing is pickled: structure is plain JSON, content is arrays. A class is found by its state name among those that the
reader expects (:mod:`fedrec.core.kinds`); its fields are checked against their types before it is made.
"""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fedrec.core.kinds import Kinds, Parts, field_hints, field_places, fits, outside, state_name
from fedrec.core.messages import item_limits

Flat = dict[str, NDArray[Any]]
Form = tuple[np.dtype[Any], tuple[int, ...]]
"""Number type and shape of an array; an axis of length 0 may get any length."""

DEEPEST = 32
"""How far state may be nested; a method's own goes three or four deep."""


class BadState(Exception):
    """A stored value that is not what it should be; says where and why."""


@dataclass(frozen=True)
class Expected:
    """What a stored value must be: its type, and the classes that it may be made of."""

    hint: Any = Any
    kinds: Kinds = field(default_factory=Kinds)
    forms: Mapping[str, Form] = field(default_factory=dict)
    """Of arrays whose form is known, by their place: compiled code takes their lengths for granted."""
    n_items: int | None = None
    """Of the data, where it is known: fields that hold items then hold no others."""

    @property
    def optional(self) -> Any:
        """The same type, or None."""
        return replace(self.hint, optional=True) if isinstance(self.hint, Parts) else Any

    def may(self, **parts: Any) -> Expected:
        """The same, where a dictionary may have these parts, too: type hints."""
        assert isinstance(self.hint, Parts)
        return replace(self, hint=replace(self.hint, may=parts))


def expect(*whole: Any, **parts: Any) -> Expected:
    """What must be read: one thing, or a dictionary of exactly these parts. Each is a type or a live value like it.

    >>> expect(server=method.start_server(world, keys), taken=dict[str, int])     # doctest: +SKIP
    """
    hints = {name: _hint_of(part) for name, part in parts.items()}
    return Expected(Parts(hints) if parts else _hint_of(*whole), Kinds(*whole, *parts.values()))


def alike(n_items: int | None = None, **parts: Any) -> Expected:
    """What must be read: a dictionary of exactly these parts, each like a live value, arrays of the same form.

    Arrays that are not there yet may come.
    """
    found = replace(expect(**parts), n_items=n_items)
    return replace(found, forms={path: (part.dtype, part.shape) for path, part in flatten(parts)[0].items()})


def _hint_of(part: Any) -> Any:
    is_hint = isinstance(part, type | Parts) or part is Any or bool(getattr(part, "__args__", ()))
    return part if is_hint else type(part)


def flatten(value: Any) -> tuple[Flat, str]:
    """The arrays in a value, and its structure as JSON."""
    arrays: Flat = {}

    def walk(part: Any, path: str) -> Any:
        if part is None or isinstance(part, bool | int | float | str):
            return {"plain": part}
        if isinstance(part, np.generic):
            return {"plain": part.item()}
        if isinstance(part, np.ndarray):
            while path in arrays:  # a key with a slash in it may look like two keys
                path += "+"
            arrays[path] = np.ascontiguousarray(part)
            return {"array": path}
        if isinstance(part, dict):
            return {"dict": {str(k): walk(v, f"{path}/{k}") for k, v in part.items()}}
        if isinstance(part, list | tuple):
            return {"list": [walk(v, f"{path}/{i}") for i, v in enumerate(part)], "tuple": isinstance(part, tuple)}
        if dataclasses.is_dataclass(part):
            names = [f.name for f in dataclasses.fields(part)]
            content = {n: walk(getattr(part, n), f"{path}/{n}") for n in names}
            return {"class": state_name(type(part)), "fields": content}
        raise TypeError(f"{path or 'state'}: {type(part).__qualname__} cannot be saved")

    structure = walk(value, "")
    return arrays, json.dumps(structure)


def shapes(value: Any) -> dict[str, tuple[int, ...]]:
    """The shape of every array in a value, by its place."""
    return {path: array.shape for path, array in flatten(value)[0].items()}


def unflatten(arrays: Flat, structure: str, expected: Expected = Expected()) -> Any:
    """The value whose parts :func:`flatten` gave, if it is what is expected; :class:`BadState` where it is not."""
    builder = _Builder(arrays, expected.kinds, expected.n_items)
    value = builder.build(parse_json(structure), "", expected.hint, 0)
    if not fits(value, expected.hint):
        raise BadState(_misfit("it", value))
    if builder.unused:
        raise BadState(f"the array {_short(min(builder.unused))} belongs to nothing")
    return value


def check_forms(value: Any, forms: Mapping[str, Form]) -> None:
    """Refuse an array that is not of the form that belongs where it stands."""
    for path, array in flatten(value)[0].items():
        kind, shape = forms.get(path, (array.dtype, array.shape))
        fitting = len(shape) == array.ndim and all(a in (0, b) for a, b in zip(shape, array.shape, strict=True))
        if array.dtype != kind or not fitting:
            raise BadState(f"{_short(path)} is {array.dtype} {array.shape} where {kind} {shape} belongs")


def parse_json(text: str) -> Any:
    """JSON from a file: a key twice, numbers without end and bottomless nesting are refused."""
    try:
        return json.loads(text, object_pairs_hook=_once)
    except (ValueError, RecursionError) as problem:
        why = "it is nested too deep" if isinstance(problem, RecursionError) else f"{problem}"[:120]
        raise BadState(f"it is not JSON ({why})") from None


def _once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    made = dict(pairs)
    if len(made) < len(pairs):
        raise ValueError("a key appears twice")
    return made


class _Builder:
    """Puts a value together from its structure, checking every step."""

    def __init__(self, arrays: Flat, kinds: Kinds, n_items: int | None) -> None:
        self.arrays, self.kinds, self.n_items = arrays, kinds, n_items
        self.unused = set(arrays)

    def build(self, spec: Any, path: str, hint: Any, depth: int) -> Any:
        where = path or "state"
        if depth > DEEPEST:
            raise BadState(f"it is nested more than {DEEPEST} deep")
        match spec:
            case {"plain": None | bool() | int() | float() | str() as plain, **rest} if not rest:
                return plain
            case {"array": str(name), **rest} if not rest:
                if name not in self.unused:
                    why = "taken twice" if name in self.arrays else "not there"
                    raise BadState(f"{_short(where)}: the array {_short(name)} is {why}")
                self.unused.remove(name)
                return self.arrays[name]
            case {"dict": dict(entries), **rest} if not rest:
                hints = hint.known if isinstance(hint, Parts) else {}
                return {k: self.build(v, f"{path}/{k}", hints.get(k, hint), depth + 1) for k, v in entries.items()}
            case {"list": list(entries), "tuple": bool(as_tuple), **rest} if not rest:
                made = [self.build(v, f"{path}/{i}", hint, depth + 1) for i, v in enumerate(entries)]
                return tuple(made) if as_tuple else made
            case {"class": str(name), "fields": dict(entries), **rest} if not rest:
                return self._instance(name, entries, path, hint, depth)
        raise BadState(f"{_short(where)}: a structure that is not known")

    def _instance(self, name: str, entries: dict[str, Any], path: str, hint: Any, depth: int) -> Any:
        kind = self.kinds.find(name, hint)
        if kind is None:
            known = ", ".join(self.kinds.names) or "no class"
            raise BadState(f"{_short(path or 'state')} is called {_short(name)}, which is not among {known}")
        fields = {f.name: f for f in dataclasses.fields(kind) if f.init}
        nothing = dataclasses.MISSING
        missing = [
            n for n, f in fields.items() if n not in entries and f.default is nothing and f.default_factory is nothing
        ]
        foreign = [n for n in entries if n not in fields]
        if missing or foreign:
            why = f"lacks the field {missing[0]!r}" if missing else f"has a foreign field {_short(foreign[0])}"
            raise BadState(f"{state_name(kind)} {why}")
        hints, made = field_hints(kind), {}
        for n, entry in entries.items():
            made[n] = self.build(entry, f"{path}/{n}", hints.get(n, Any), depth + 1)
            if not fits(made[n], hints.get(n, Any)):
                raise BadState(_misfit(f"the field {n!r} of {state_name(kind)}", made[n]))
        for n, places in field_places(kind).items():
            if n in made and places.other in made and (wrong := places.wrong(made[n], made[places.other])):
                raise BadState(f"the field {n!r} of {state_name(kind)} {wrong}")
        for n, most in item_limits(kind, self.n_items).items():
            if isinstance(made.get(n), np.ndarray) and (wrong := outside(made[n], 0, most)):
                raise BadState(f"the field {n!r} of {state_name(kind)} {wrong}")
        try:
            return kind(**made)
        except Exception as problem:  # a class may check itself
            raise BadState(f"{state_name(kind)} refuses its fields ({type(problem).__name__}: {problem})") from None


def _misfit(what: str, value: Any) -> str:
    is_what = "an array" if isinstance(value, np.ndarray) else type(value).__name__
    if isinstance(value, dict):
        is_what = f"a dictionary of {_short(', '.join(map(str, value)))}"
    return f"{what} is {is_what}, which is not what belongs there"


def _short(text: str) -> str:
    """A name from a file, short enough for one line."""
    return repr(text if len(text) <= 60 else text[:57] + "...")
