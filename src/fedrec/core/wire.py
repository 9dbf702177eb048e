"""How a message becomes bytes, and how many.

Only classes derived from :class:`~fedrec.core.messages.Wire` can be encoded; private state cannot.
The encoding is one safetensors buffer: a header with names, types and shapes, then the arrays' bytes.
Byte counts are those of the arrays (the header is a few hundred bytes a message, not a client).

A table's changes (:class:`Rows`) cross the wire in one of two forms: ``dense``, every row of every client, or
``rows``, the changed rows and their ids. Without noise both show which items a client has trained on, the
dense form by its zero rows; only noise on every coordinate hides it.
"""

from __future__ import annotations

import dataclasses
import json
import typing
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from fedrec.core.messages import Rows, Wire
from fedrec.data.ragged import offsets

Message = TypeVar("Message", bound=Wire)


class WireError(Exception):
    """Bytes that are not the message they claim to be, or a value that must not leave."""


@dataclass(frozen=True)
class Form:
    """How messages are written: the form of table changes and the number format."""

    rows: str = "dense"
    precision: str = "float32"

    @classmethod
    def of(cls, settings: Any) -> Form:
        """The form that a method's settings ask for (``upload_form``, ``precision``)."""
        return cls(getattr(settings, "upload_form", "dense"), getattr(settings, "precision", "float32"))


def encode(message: Wire, form: Form = Form()) -> bytes:
    """The message as bytes."""
    from safetensors.numpy import save

    arrays = dict(message_arrays(message, form))
    about = {"type": _kind(type(message)), "form": dataclasses.asdict(form), "nested": dict(_nested(message))}
    # one key: safetensors writes several in no fixed order, and equal messages should have equal bytes
    header = {"fedrec": json.dumps(about, sort_keys=True)}
    return save({name: np.ascontiguousarray(array) for name, array in arrays.items()}, metadata=header)


def decode(kind: type[Message], data: bytes, forms: Mapping[str, type[Any]] | None = None) -> Message:
    """The message of this type in these bytes; ``forms`` are the classes a field may be folded into."""
    from safetensors import SafetensorError
    from safetensors.numpy import load

    try:
        size = int.from_bytes(data[:8], "little")
        about = json.loads(json.loads(data[8 : 8 + size])["__metadata__"]["fedrec"])
        arrays = load(data)
        nested = {path: (forms or {})[name] for path, name in about["nested"].items()}
    except (SafetensorError, ValueError, KeyError, TypeError) as problem:
        raise WireError(f"not a message: {problem}") from None
    if about.get("type") != _kind(kind):
        raise WireError(f"expected {_kind(kind)}, got {about.get('type')}")
    return _rebuild(kind, "", arrays, nested)


def payload(message: Wire, form: Form = Form()) -> int:
    """Bytes of the arrays in the encoded message, counted without building it."""
    return sum(_sizes(message, form))


def rounded(message: Message, form: Form) -> Message:
    """The message as its receiver will see it: floating numbers through the wire's precision."""
    if form.precision != "float16":
        return message

    def through(content: Any) -> Any:
        if isinstance(content, Rows):
            return dataclasses.replace(content, values=through(content.values))
        if isinstance(content, np.ndarray) and content.dtype.kind == "f":
            return content.astype(np.float16).astype(content.dtype)
        if isinstance(content, dict):
            return {key: through(array) for key, array in content.items()}
        return rounded(content, form) if isinstance(content, Wire) else content

    fields = dataclasses.fields(message)  # type: ignore[arg-type]
    return dataclasses.replace(message, **{f.name: through(getattr(message, f.name)) for f in fields})  # type: ignore[type-var]


def _kind(kind: type[Any]) -> str:
    return kind.__qualname__


def message_arrays(message: Any, form: Form, prefix: str = "") -> typing.Iterator[tuple[str, NDArray[Any]]]:
    """Names and arrays of a message as they are written."""
    if not isinstance(message, Wire) or not dataclasses.is_dataclass(message):
        raise WireError(f"{type(message).__qualname__} has no wire encoding: it does not leave the client")
    for spec in dataclasses.fields(message):
        content, name = getattr(message, spec.name), prefix + spec.name
        if content is None:
            continue
        if isinstance(content, Rows):
            if form.rows == "dense":
                yield name + ".dense", _cast(whole_tables(content), form)
            else:
                yield name + ".start", content.start
                yield name + ".ids", content.ids
                yield name + ".values", _cast(content.values, form)
            yield name + ".n_items", np.array([content.n_items], np.int64)
        elif isinstance(content, Wire):
            yield from message_arrays(content, form, name + ".")
        elif isinstance(content, dict):
            for key, entry in content.items():
                if isinstance(entry, Wire):
                    yield from message_arrays(entry, form, f"{name}[{key}].")
                else:
                    yield f"{name}[{key}]", _cast(entry, form)
        elif isinstance(content, np.ndarray):
            yield name, _cast(content, form)
        elif isinstance(content, bool | int | float):
            yield name, np.array([content])
        else:
            raise WireError(f"field {name!r} ({type(content).__qualname__}) has no wire encoding")


def _sizes(message: Any, form: Form) -> typing.Iterator[int]:
    width = np.dtype(form.precision).itemsize
    for spec in dataclasses.fields(message):
        content = getattr(message, spec.name)
        if isinstance(content, Rows):
            if form.rows == "dense":
                yield content.n_clients * content.n_items * content.values.shape[1] * width
            else:
                yield content.values.size * width + content.ids.nbytes
        elif isinstance(content, Wire):
            yield from _sizes(content, form)
        elif isinstance(content, np.ndarray | dict):
            for entry in content.values() if isinstance(content, dict) else [content]:
                if isinstance(entry, Wire):
                    yield from _sizes(entry, form)
                else:
                    yield entry.size * width if entry.dtype.kind == "f" else entry.nbytes


def is_bookkeeping(name: str) -> bool:
    """Whether an array only says how others are cut (a number a message, or one a client); not counted."""
    return name.endswith((".n_items", ".start"))


def whole_tables(rows: Rows) -> NDArray[np.float32]:
    """``[clients, n_items, d]``; a view when the rows are whole tables already."""
    if len(rows.ids) == rows.n_clients * rows.n_items:
        return rows.values.reshape(rows.n_clients, rows.n_items, -1)
    return rows.dense()


def rows_of_tables(tables: NDArray[np.float32]) -> Rows:
    """Whole tables ``[clients, n_items, d]`` as rows."""
    clients, n_items, dim = tables.shape
    start = offsets(np.full(clients, n_items))
    return Rows(start, np.tile(np.arange(n_items, dtype=np.int32), clients), tables.reshape(-1, dim), n_items)


def _cast(array: NDArray[Any], form: Form) -> NDArray[Any]:
    return array.astype(form.precision) if array.dtype.kind == "f" else array


def _uncast(array: NDArray[Any]) -> NDArray[Any]:
    return array.astype(np.float32) if array.dtype.kind == "f" else array


def _nested(message: Any, prefix: str = "") -> typing.Iterator[tuple[str, str]]:
    """Where a field holds another message instead of an array, and of which class."""
    for spec in dataclasses.fields(message):
        content, name = getattr(message, spec.name), prefix + spec.name
        entries = {f"{name}[{k}]": v for k, v in content.items()} if isinstance(content, dict) else {name: content}
        for path, entry in entries.items():
            if isinstance(entry, Wire):
                yield path, _kind(type(entry))
                yield from _nested(entry, path + ".")


def _rebuild(kind: type[Any], prefix: str, arrays: dict[str, NDArray[Any]], nested: dict[str, type[Any]]) -> Any:
    hints = typing.get_type_hints(kind)

    def content(path: str, hint: Any) -> Any:
        if path in nested:
            return _rebuild(nested[path], path + ".", arrays, nested)
        if path + ".n_items" in arrays:
            return _rows(path, arrays)
        if path in arrays:
            scalar = next((o for o in typing.get_args(hint) or (hint,) if o in (int, float, bool)), None)
            return scalar(arrays[path][0]) if scalar else _uncast(arrays[path])
        if type(None) in typing.get_args(hint):
            return None
        raise WireError(f"{_kind(kind)} lacks the field {path!r}")

    built: dict[str, Any] = {}
    for spec in dataclasses.fields(kind):
        path, hint = prefix + spec.name, hints[spec.name]
        if (typing.get_origin(hint) or hint) is dict:
            head = path + "["
            keys = {name[len(head) : name.index("]", len(head))] for name in arrays if name.startswith(head)}
            built[spec.name] = {key: content(f"{head}{key}]", Any) for key in sorted(keys)}
        else:
            built[spec.name] = content(path, hint)
    return kind(**built)


def _rows(name: str, arrays: dict[str, NDArray[Any]]) -> Rows:
    n_items = int(arrays[name + ".n_items"][0])
    if name + ".dense" in arrays:
        return rows_of_tables(_uncast(arrays[name + ".dense"]))
    return Rows(arrays[name + ".start"], arrays[name + ".ids"], _uncast(arrays[name + ".values"]), n_items)
