"""Which fields of an upload are protected, seen as numbers that belong to one client or another.

Floating fields are protected. A field opts out with ``metadata={"protect": False}`` (FedAvg's data-size
weight, say); integer fields cannot carry noise and are never protected. :func:`open_fields` names both, so
that a report can say what leaves as it is.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from math import prod
from typing import Any, TypeVar, get_args, get_type_hints

import numpy as np
from numpy.typing import NDArray

from fedrec.core.block import Block
from fedrec.core.messages import Array, Axis, Rows, Upload
from fedrec.core.wire import rows_of_tables
from fedrec.data.ragged import Int64

Sent = TypeVar("Sent", bound=Upload)


@dataclass(frozen=True)
class Part:
    """A protected field: client ``c`` holds rows ``start[c] .. start[c + 1]`` of ``numbers``."""

    name: str
    content: Rows | Array
    start: Int64  # [clients + 1]
    numbers: NDArray[np.floating]  # [rows, width], a view of the content where it can be
    listed: bool = False
    """Whether unlisted rows do not exist (else they did not change)."""

    @property
    def width(self) -> int:
        return int(self.numbers.shape[1])

    @property
    def owners(self) -> Int64:
        """``[rows]`` position in the block of the client that each row belongs to."""
        return np.repeat(np.arange(len(self.start) - 1), np.diff(self.start))

    @property
    def coordinates(self) -> Int64:
        """``[clients]`` numbers that this field has, those of unlisted (unchanged) rows included."""
        if isinstance(self.content, Rows) and not self.listed:
            return np.full(len(self.start) - 1, self.content.n_items * self.width, np.int64)
        return np.diff(self.start) * self.width

    def filled(self, numbers: NDArray[Any]) -> Rows | Array:
        """The field with other numbers ``[rows, width]`` in the same places."""
        if isinstance(self.content, Rows):
            return dataclasses.replace(self.content, values=numbers)
        return numbers.reshape(self.content.shape)


def protected(upload: Upload, block: Block) -> list[Part]:
    """The protected fields of an upload, in the order of declaration."""
    return [
        _part(name, spec.metadata, content, block)
        for spec, name, content in contents(upload)
        if _is_protected(spec, content)
    ]


def open_fields(upload: Upload) -> tuple[str, ...]:
    """The fields that leave as they are: integers, and those that opted out."""
    return tuple(
        name for spec, name, content in contents(upload) if content is not None and not _is_protected(spec, content)
    )


def telling(upload: Upload) -> frozenset[str]:
    """Those of them that tell of a client's data, so that no bound and no noise covers what they give away."""
    return frozenset(
        name
        for spec, name, content in contents(upload)
        if content is not None and not spec.metadata.get("public") and not _is_protected(spec, content)
    )


def always_telling(kind: type[Upload]) -> frozenset[str]:
    """The same by the class alone: fields that are in every upload of this kind."""
    hints = get_type_hints(kind)
    return frozenset(
        spec.name
        for spec in dataclasses.fields(kind)  # type: ignore[arg-type]
        if not spec.metadata.get("protect", True)
        and not spec.metadata.get("public")
        and type(None) not in get_args(hints[spec.name])
    )


def coordinates(upload: Upload, block: Block) -> Int64:
    """``[clients]`` how many protected numbers each client sends (of whole tables, before compression)."""
    return sum((part.coordinates for part in protected(upload, block)), np.zeros(block.n_clients, np.int64))


def most_coordinates(upload: Upload, block: Block, users: NDArray[Any], interactions: NDArray[Any]) -> int:
    """How many protected numbers that client sends that sends most, seen from the upload of a few.

    ``users`` and ``interactions`` ``[all clients]`` are how many each of them has.
    """
    axes = {spec.name: spec.metadata.get("axis", Axis.SHARED) for spec in dataclasses.fields(upload)}  # type: ignore[arg-type]
    entries = {Axis.CLIENT: np.ones(len(users)), Axis.USER: users, Axis.INTERACTION: interactions}
    total = np.zeros(len(users))  # not in whole numbers, which nodes that claim many users could overflow
    for part in protected(upload, block):
        if isinstance(part.content, Rows):
            total += part.coordinates.max(initial=0)
        else:
            total += entries[axes[part.name.partition("[")[0]]].astype(np.float64) * part.width
    return int(total.max(initial=0.0))


def with_fields(upload: Sent, replaced: Mapping[str, Any]) -> Sent:
    """The upload with some fields replaced; ``field[key]`` names an entry of a field that is a dict."""
    changed: dict[str, Any] = {}
    for name, content in replaced.items():
        field, entry, key = name.partition("[")
        if entry:
            changed.setdefault(field, dict(getattr(upload, field)))[key[:-1]] = content
        else:
            changed[field] = content
    return dataclasses.replace(upload, **changed) if changed else upload  # type: ignore[type-var]


def contents(upload: Upload) -> Iterator[tuple[dataclasses.Field[Any], str, Any]]:
    """Every field with its name and content; a dict's entries one by one."""
    for spec in dataclasses.fields(upload):  # type: ignore[arg-type]
        content = getattr(upload, spec.name)
        if isinstance(content, dict):
            yield from ((spec, f"{spec.name}[{key}]", entry) for key, entry in content.items())
        else:
            yield spec, spec.name, content


def densified(rows: Rows) -> Rows:
    """Whole tables as rows: every item of every client listed, zero where nothing changed. Always a copy."""
    tables = np.zeros((rows.n_clients, rows.n_items, rows.values.shape[1]), rows.values.dtype)
    tables[np.repeat(np.arange(rows.n_clients), np.diff(rows.start)), rows.ids] = rows.values
    return rows_of_tables(tables)


def _is_protected(spec: dataclasses.Field[Any], content: Any) -> bool:
    if content is None or not spec.metadata.get("protect", True):
        return False
    values = content.values if isinstance(content, Rows) else content
    if isinstance(values, np.ndarray):
        return values.dtype.kind == "f"
    if isinstance(values, bool | int):
        return False
    # Better a stop than a value that slips past clip and noise unseen.
    raise TypeError(f"upload field {spec.name!r} ({type(content).__name__}) is neither Rows nor an array")


def _part(name: str, about: Mapping[str, Any], content: Rows | Array, block: Block) -> Part:
    if isinstance(content, Rows):
        return Part(name, content, content.start, content.values, bool(about.get("listed")))
    axis = about.get("axis", Axis.SHARED)
    if axis is Axis.CLIENT:
        start = np.arange(block.n_clients + 1, dtype=np.int64)
    elif axis is Axis.USER:
        start = block.user_start
    elif axis is Axis.INTERACTION:
        start = block.train.start[block.user_start]
    else:
        raise TypeError(f"upload field {name!r} is shared: an upload belongs to clients; declare it per_client()")
    if len(content) != start[-1]:
        raise ValueError(f"upload field {name!r} has {len(content)} entries for {start[-1]} along its axis")
    return Part(name, content, start, content.reshape(len(content), prod(content.shape[1:])))
