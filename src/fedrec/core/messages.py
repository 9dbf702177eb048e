"""What a client keeps and what crosses the wire, as typed values of arrays.

A method declares three dataclasses: ``Private`` (never leaves), ``Upload`` and ``Download`` (cross the
wire). Each field says along which axis it is stacked, so that any runtime can cut a value into clients
and put it together again.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from enum import Enum
from functools import cache
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from fedrec.core.block import Block
from fedrec.data.ragged import Int32, Int64, consecutive, lengths, offsets, segments

Float32 = NDArray[np.float32]
Array = NDArray[Any]


class Axis(Enum):
    """What the leading axis of an array counts."""

    SHARED = "shared"  # nothing: one value for all clients
    CLIENT = "client"
    USER = "user"
    INTERACTION = "interaction"  # the block's training interactions, user after user


class Limit(Enum):
    """A bound of a field's numbers that depends on whose they are."""

    ITEM = "item"  # the last item's number
    ITEMS = "items"  # the number of items
    USERS = "users"  # users of the client
    OWNED = "owned"  # interactions that the client can have: every item once for each of its users


Bound = int | float | Limit | None


@dataclass(frozen=True)
class Range:
    """The least and the largest value that a field's numbers can have; None where there is no bound."""

    low: Bound = None
    high: Bound = None


ANY = Range()


def item_limits(kind: type[Any], n_items: int | None) -> dict[str, int]:
    """The fields of a message or of private state that hold items, and the largest number in each."""
    if n_items is None:
        return {}
    limits = {Limit.ITEM: n_items - 1, Limit.ITEMS: n_items}
    given = {spec.name: spec.metadata.get("range", ANY).high for spec in dataclasses.fields(kind)}
    return {name: limits[high] for name, high in given.items() if isinstance(high, Limit) and high in limits}


def _field(axis: Axis, protect: bool, low: Bound, high: Bound, counted_by: str | None = None, **more: bool) -> Any:
    about = {"axis": axis, "protect": protect, "range": Range(low, high), "counted_by": counted_by, **more}
    return field(metadata=about)


def shared(*, low: Bound = None, high: Bound = None) -> Any:
    """A field that is the same for all clients."""
    return _field(Axis.SHARED, True, low, high)


def per_client(
    protect: bool = True, *, low: Bound = None, high: Bound = None, listed: bool = False, public: bool = False
) -> Any:
    """A field stacked over clients; without ``protect`` the privacy chain lets it pass as it is.

    ``low`` and ``high`` bound its numbers: a message with others is refused before it is used. ``listed``: rows that a
    client does not list are none of its own (a smaller model has fewer), so they are never filled in, noised or sent.
    ``public``: it tells nothing of anybody's data (what is drawn, or known to the server from the first meeting on).
    """
    return _field(Axis.CLIENT, protect, low, high, listed=listed, public=public)


def per_user(*, low: Bound = None, high: Bound = None) -> Any:
    """A field stacked over users."""
    return _field(Axis.USER, True, low, high)


def per_interaction(
    protect: bool = True, *, low: Bound = None, high: Bound = None, counted_by: str | None = None
) -> Any:
    """A field stacked over training interactions: a row for each item a user has.

    ``counted_by`` names the field that says how many rows each client (or user) has.
    """
    return _field(Axis.INTERACTION, protect, low, high, counted_by)


@dataclass(frozen=True)
class Rows:
    """Rows of an item table, client by client: client ``c`` has ``ids[start[c]:start[c + 1]]``, ascending.

    Changes against the downloaded table; rows that are not listed did not change. ``n_items`` rows make
    the whole table.
    """

    start: Int64  # [clients + 1]
    ids: Int32  # [rows]
    values: Float32  # [rows, d]
    n_items: int

    @property
    def n_clients(self) -> int:
        return len(self.start) - 1

    def take(self, positions: NDArray[np.integer]) -> Rows:
        index = segments(self.start, positions)
        return Rows(offsets(lengths(self.start, positions)), self.ids[index], self.values[index], self.n_items)

    def dense(self) -> Float32:
        """``[clients, n_items, d]``, zero where nothing changed."""
        table = np.zeros((self.n_clients, self.n_items, self.values.shape[1]), np.float32)
        owner = np.repeat(np.arange(self.n_clients), np.diff(self.start))
        table[owner, self.ids] = self.values
        return table


class Private:
    """Base of what stays on a client. It has no wire encoding: encoding one is an error."""


class Model:
    """Base of what a client holds and scores with: made from a download, or by local work. It has no wire encoding."""


class Wire:
    """Base of what may cross the wire."""


class Upload(Wire):
    """Base of what a client sends."""


class Download(Wire):
    """Base of what a client receives."""


Value = TypeVar("Value")


@cache
def _held_kind(kind: type[Any]) -> type[Any]:
    fields = [(f.name, f.type, field(metadata=f.metadata)) for f in dataclasses.fields(kind)]

    def pickled(value: Any) -> Any:  # by the message's class, which is found by its name
        return _held_again, (kind, *(getattr(value, name) for name, _, _ in fields))

    namespace = {"__reduce__": pickled}
    return dataclasses.make_dataclass(f"Held{kind.__name__}", fields, bases=(Model,), namespace=namespace, frozen=True)


def _held_again(kind: type[Any], *values: Any) -> Any:
    return _held_kind(kind)(*values)  # type: ignore[arg-type]


def held(download: Download) -> Any:
    """A download in a client's hands: a :class:`Model` with the same fields."""
    values = {f.name: getattr(download, f.name) for f in dataclasses.fields(download)}  # type: ignore[arg-type]
    return _held_kind(type(download))(**values)  # type: ignore[arg-type]


def fields_of(value: Any) -> list[tuple[str, Axis, Any]]:
    """Name, axis and content of each field."""
    return [(f.name, f.metadata.get("axis", Axis.SHARED), getattr(value, f.name)) for f in dataclasses.fields(value)]


def personal_fields(value: Any) -> list[str]:
    """Names of the fields in which every client has something of its own."""
    return [name for name, axis, _ in fields_of(value) if axis is not Axis.SHARED]


def opened(value: Any) -> Iterator[tuple[str, Any]]:
    """Name and content of each field, and of each entry of a field that is a dictionary (``networks[out]``)."""
    for name, _, content in fields_of(value):
        if isinstance(content, dict):
            yield from ((f"{name}[{key}]", entry) for key, entry in content.items())
        else:
            yield name, content


def index_along(axis: Axis, block: Block, positions: NDArray[np.integer]) -> Int64 | None:
    """Where the entries of the clients at ``positions`` of ``block`` lie along an axis."""
    if axis is Axis.CLIENT:
        return positions.astype(np.int64)
    users = segments(block.user_start, positions)
    if axis is Axis.USER:
        return users
    if axis is Axis.INTERACTION:
        return segments(block.train.start, users)
    return None


def gather(value: Value, block: Block, positions: NDArray[np.integer]) -> Value:
    """The part of a stacked value that belongs to some clients; views where they are consecutive."""

    def part(axis: Axis, content: Any) -> Any:
        if isinstance(content, Rows):
            return content.take(positions)
        if isinstance(content, dict):
            return {key: part(axis, array) for key, array in content.items()}
        index = index_along(axis, block, positions)
        if index is None or content is None:
            return content
        return content[index[0] : index[-1] + 1] if consecutive(index) else content[index]

    return dataclasses.replace(value, **{n: part(a, c) for n, a, c in fields_of(value)})  # type: ignore[type-var]


def scatter(into: Value, block: Block, positions: NDArray[np.integer], value: Value) -> None:
    """Write the part of some clients back into the stacked value, in place."""
    for name, axis, content in fields_of(value):
        index = index_along(axis, block, positions)
        target = getattr(into, name)
        if index is None or target is None or not len(index):
            continue
        where: Any = slice(index[0], index[-1] + 1) if consecutive(index) else index
        pairs = [(target[k], content[k]) for k in target] if isinstance(target, dict) else [(target, content)]
        for array, part in pairs:
            if array[where].__array_interface__["data"] != part.__array_interface__["data"]:  # not itself a view
                array[where] = part


def concatenate(values: Sequence[Value]) -> Value:
    """Stack the parts of successive groups of clients; shared fields are taken from the first."""
    first = values[0]
    if len(values) == 1:
        return first

    def joined(name: str, axis: Axis, content: Any) -> Any:
        parts = [getattr(value, name) for value in values]
        if isinstance(content, Rows):
            counts = np.concatenate([np.diff(p.start) for p in parts])
            return Rows(
                offsets(counts),
                np.concatenate([p.ids for p in parts]),
                np.concatenate([p.values for p in parts]),
                content.n_items,
            )
        if axis is Axis.SHARED or content is None:
            return content
        if isinstance(content, dict):
            return {key: np.concatenate([p[key] for p in parts]) for key in content}
        return np.concatenate(parts)

    return dataclasses.replace(first, **{n: joined(n, a, c) for n, a, c in fields_of(first)})  # type: ignore[type-var]
