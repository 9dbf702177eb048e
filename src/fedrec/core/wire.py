"""How a message becomes bytes, and how many.

Only classes derived from :class:`~fedrec.core.messages.Wire` can be encoded; private state cannot.
The encoding is one safetensors buffer: a header with names, types and shapes, then the arrays' bytes.
Byte counts are those of the arrays (the header is a few hundred bytes a message, not a client).

A table's changes (:class:`Rows`) cross the wire in one of two forms: ``dense``, every row of every client, or
``rows``, the changed rows and their ids. Without noise both show which items a client has trained on, the
dense form by its zero rows; only noise on every coordinate hides it.

What is decoded may come from anybody: sizes are checked against the bytes that are there before memory is taken,
and whatever is not a message ends in :class:`WireError`, nothing else.
"""

from __future__ import annotations

import dataclasses
import json
import math
import types
import typing
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from fedrec.core.messages import Axis, Download, Rows, Wire, fields_of
from fedrec.data.ragged import offsets

Message = TypeVar("Message", bound=Wire)

MOST_HEADER = 1 << 20
"""Bytes of names, types and shapes; real messages have a few thousand."""
MOST_ARRAYS = 1024
MOST_AXES = 8
MOST_ENTRIES = 1 << 40
"""Along one axis; arrays without numbers may claim any shape."""
NUMBERS = {
    "F16": 2, "F32": 4, "F64": 8, "I8": 1, "I16": 2, "I32": 4, "I64": 8, "U8": 1, "U16": 2, "U32": 4, "U64": 8,
    "BOOL": 1,
}  # fmt: skip
"""Number formats that cross the wire, with their bytes."""


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
    nested = {path: type(content).__qualname__ for path, _, content in _contents(message) if isinstance(content, Wire)}
    about = {"type": type(message).__qualname__, "form": dataclasses.asdict(form), "nested": nested}
    # one key: safetensors writes several in no fixed order, and equal messages should have equal bytes
    header = {"fedrec": json.dumps(about, sort_keys=True)}
    return save({name: np.ascontiguousarray(array) for name, array in arrays.items()}, metadata=header)


def decode(kind: type[Message], data: bytes, forms: Mapping[str, type[Any]] | None = None) -> Message:
    """The message of this type in these bytes; ``forms`` are the classes a field may be folded into."""
    from safetensors.numpy import load

    try:
        about, forms = _about(data), forms or {}
        if about.get("type") != kind.__qualname__:
            raise WireError(f"expected {kind.__qualname__}, got {str(about.get('type'))[:80]!r}")
        nested: dict[str, type[Any]] = {}
        for path, name in dict(about.get("nested", {})).items():
            if name not in forms or "." in path:
                raise WireError("a field is folded into a form that there is not")
            nested[path] = forms[name]
        arrays = load(data)
        built: Message = _rebuild(kind, "", arrays, nested)
        if arrays or nested:
            raise WireError(f"{kind.__qualname__} has no field {str(next(iter(arrays or nested)))[:80]!r}")
        return built
    except WireError:
        raise
    except Exception as problem:
        said = " ".join(str(problem).split())[:200]
        raise WireError(f"not a message: {type(problem).__name__}: {said}") from None


def _about(data: bytes) -> dict[str, Any]:
    """What a message says about itself, once its header is one and agrees with the bytes behind it."""
    size = int.from_bytes(data[:8], "little")
    if len(data) < 8 or size > min(len(data) - 8, MOST_HEADER):
        raise WireError("not a message: its header is not there, or too long")
    header = json.loads(data[8 : 8 + size])
    if not isinstance(header, dict) or len(header) > MOST_ARRAYS:
        raise WireError("not a message: its header lists no arrays, or too many")
    about = json.loads(header.pop("__metadata__")["fedrec"])
    behind = len(data) - 8 - size
    for name, entry in header.items():
        shape, (first, last) = entry["shape"], entry["data_offsets"]
        width = NUMBERS.get(entry["dtype"])
        whole = all(type(n) is int for n in (*shape, first, last))
        if width is None or not whole or len(shape) > MOST_AXES or not 0 <= first <= last <= behind:
            raise WireError(f"not a message: the array {name[:80]!r} is not one")
        if not all(0 <= n <= MOST_ENTRIES for n in shape) or math.prod(shape) * width != last - first:
            raise WireError(f"not a message: {name[:80]!r} has not the bytes of its shape")
    if not isinstance(about, dict):
        raise WireError("not a message: it does not say what it is")
    return about


def payload(message: Wire, form: Form = Form()) -> int:
    """Bytes of the arrays in the encoded message, counted without building it."""
    return sum(_sizes(message, form))


def download_bytes(download: Download, form: Form, clients: int) -> int:
    """Download bytes of so many clients: each receives the shared fields and its own personal ones."""
    total = 0
    for name, axis, _ in fields_of(download):
        others = {other: None for other, _, _ in fields_of(download) if other != name}
        size = payload(dataclasses.replace(download, **others), form)  # type: ignore[type-var]
        total += size * clients if axis is Axis.SHARED else size
    return total


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


def _contents(message: Any, prefix: str = "") -> Iterator[tuple[str, dataclasses.Field[Any], Any]]:
    """Path, field and content of all in a message: each entry of a dictionary, and all in a message it holds."""
    if not isinstance(message, Wire) or not dataclasses.is_dataclass(message):
        raise WireError(f"{type(message).__qualname__} has no wire encoding: it does not leave the client")
    for spec in dataclasses.fields(message):
        content, name = getattr(message, spec.name), prefix + spec.name
        entries = {f"{name}[{k}]": v for k, v in content.items()} if isinstance(content, dict) else {name: content}
        for path, entry in entries.items():
            yield path, spec, entry
            if isinstance(entry, Wire):
                yield from _contents(entry, path + ".")


def message_arrays(message: Any, form: Form) -> Iterator[tuple[str, NDArray[Any]]]:
    """Names and arrays of a message as they are written."""
    for name, spec, content in _contents(message):
        if content is None or isinstance(content, Wire):
            continue
        if isinstance(content, Rows):
            if _filled_up(spec, form):
                yield name + ".dense", _cast(whole_tables(content), form)
            else:
                yield name + ".start", content.start
                yield name + ".ids", content.ids
                yield name + ".values", _cast(content.values, form)
            yield name + ".n_items", np.array([content.n_items], np.int64)
        elif isinstance(content, np.ndarray):
            yield name, _cast(content, form)
        elif isinstance(content, bool | int | float):
            yield name, np.array([content])
        else:
            raise WireError(f"field {name!r} ({type(content).__qualname__}) has no wire encoding")


def _filled_up(spec: dataclasses.Field[Any], form: Form) -> bool:
    """Whether rows cross as whole tables; rows that a client does not list may be none of its own."""
    return form.rows == "dense" and not spec.metadata.get("listed")


def _sizes(message: Any, form: Form) -> Iterator[int]:
    width = np.dtype(form.precision).itemsize
    for _, spec, content in _contents(message):
        if isinstance(content, Rows):
            if _filled_up(spec, form):
                yield content.n_clients * content.n_items * content.values.shape[1] * width
            else:
                yield content.values.size * width + content.ids.nbytes
        elif isinstance(content, np.ndarray):
            yield content.size * width if content.dtype.kind == "f" else content.nbytes


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
    with np.errstate(over="ignore"):  # what is too large becomes infinite, and is refused as that
        return array.astype(np.float32) if array.dtype.kind == "f" else array


def _rebuild(kind: type[Any], prefix: str, arrays: dict[str, NDArray[Any]], nested: dict[str, type[Any]]) -> Any:
    """The message whose fields these are; arrays and forms are taken out as they are used."""
    hints = typing.get_type_hints(kind)

    def content(path: str, hint: Any) -> Any:
        if path in nested:
            return _rebuild(nested.pop(path), path + ".", arrays, {})
        options = typing.get_args(hint) if typing.get_origin(hint) in UNIONS else (hint,)
        if path + ".n_items" in arrays and (Rows in options or Any in options):
            return _rows(path, arrays)
        if path in arrays:
            scalar = next((o for o in options if o in SCALARS), None)
            return _scalar(path, arrays.pop(path), scalar) if scalar else _uncast(arrays.pop(path))
        if type(None) in options:
            return None
        raise WireError(f"{kind.__qualname__} lacks the field {path[:80]!r}")

    built: dict[str, Any] = {}
    for spec in dataclasses.fields(kind):
        path, hint = prefix + spec.name, hints[spec.name]
        if (typing.get_origin(hint) or hint) is dict:
            head = path + "["
            named = [name for name in (*arrays, *nested) if name.startswith(head)]
            keys = {name[len(head) : name.index("]", len(head))] for name in named}
            built[spec.name] = {key: content(f"{head}{key}]", np.ndarray) for key in sorted(keys)}
        else:
            built[spec.name] = content(path, hint)
    return kind(**built)


UNIONS = (typing.Union, types.UnionType)
SCALARS = {bool: "b", int: "iu", float: "f"}


def _scalar(name: str, array: NDArray[Any], kind: Any) -> Any:
    if array.shape != (1,) or array.dtype.kind not in SCALARS[kind] or not np.isfinite(array[0]):
        raise WireError(f"{name[:80]!r} is not one {kind.__name__}")
    return kind(array[0])


def _rows(name: str, arrays: dict[str, NDArray[Any]]) -> Rows:
    n_items = _scalar(name + ".n_items", arrays.pop(name + ".n_items"), int)
    if name + ".dense" in arrays:
        tables = arrays.pop(name + ".dense")
        # without numbers any number of clients could be claimed in no bytes
        if tables.ndim != 3 or tables.dtype.kind != "f" or not tables.size or tables.shape[1] != n_items:
            raise WireError(f"{name[:80]!r} has the shape {tables.shape}, which is not that of tables")
        return rows_of_tables(_uncast(tables))
    start, ids, values = (arrays.pop(f"{name}.{part}") for part in ("start", "ids", "values"))
    fits = start.ndim == ids.ndim == 1 and values.ndim == 2 and len(start) > 0
    if not fits or start.dtype != np.int64 or ids.dtype != np.int32 or values.dtype.kind != "f":
        raise WireError(f"{name[:80]!r} is not rows of tables")
    return Rows(start, ids, _uncast(values), n_items)
