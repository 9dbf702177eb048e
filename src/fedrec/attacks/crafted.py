"""Uploads made by dishonest clients: honest ones cut down to some items, scaled, or with other rows."""

from __future__ import annotations

import dataclasses
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fedrec.core.messages import Axis, Rows, fields_of
from fedrec.data.ragged import offsets
from fedrec.maths.packed import packed_size, row_starts
from fedrec.privacy.fields import contents, with_fields

BOOST = 100.0
"""How many times the honest change."""


def times(upload: Any, factor: float) -> Any:
    """Every protected number times a factor; gradients in factors by way of one of the two."""
    own = getattr(upload, "scaled", None)
    if own is not None:
        return own(np.full(len(upload.counts), factor))
    return _changed(upload, lambda numbers: numbers * np.asarray(factor, numbers.dtype))


def noise_like(upload: Any, draws: np.random.Generator, factor: float) -> Any:
    """Normal noise in the place of every protected number, each field as large as it was."""

    def drawn(numbers: NDArray[Any]) -> NDArray[Any]:
        deviation = float(np.sqrt(np.mean(np.square(numbers, dtype=np.float64)))) if numbers.size else 0.0
        return (factor * deviation * draws.standard_normal(numbers.shape)).astype(numbers.dtype)

    return _changed(upload, drawn)


def only_item(upload: Any, item: int, n_items: int) -> Any:
    """The upload with nothing but one item's row (or pairs) in its tables; other fields stay as they are."""
    fields: dict[str, Any] = {}
    for name, _, content in fields_of(upload):
        if not isinstance(content, Rows):
            continue
        if content.n_items == n_items:
            wanted = np.array([item])
        elif content.n_items == packed_size(n_items):
            others = np.arange(n_items)
            low, high = np.minimum(others, item), np.maximum(others, item)
            wanted = row_starts(n_items)[low] + high - low
        else:
            continue
        keep = np.isin(content.ids, wanted)
        owner = np.repeat(np.arange(content.n_clients), np.diff(content.start))[keep]
        start = offsets(np.bincount(owner, minlength=content.n_clients))
        fields[name] = Rows(start, content.ids[keep], content.values[keep], content.n_items)
    return with_fields(upload, fields)


def with_row(upload: Any, item: int, row: NDArray[Any], n_items: int) -> Any | None:
    """The upload with one item's row in its first table, the same for all clients, and zeros else; None without one."""
    for name, axis, content in fields_of(upload):
        if isinstance(content, Rows) and content.n_items == n_items and content.values.shape[1] == len(row):
            clients = content.n_clients
            ids = np.full(clients, item, np.int32)
            rows = Rows(np.arange(clients + 1), ids, np.tile(row, (clients, 1)).astype(np.float32), n_items)
            return with_fields(times(upload, 0.0), {name: rows})
        if axis is Axis.CLIENT and isinstance(content, np.ndarray) and content.shape[1:] == (n_items, len(row)):
            tables = content.copy()  # a whole table: one row of it elsewhere
            tables[:, item] += row
            return with_fields(upload, {name: tables})
    return None


def item_table(download: Any, n_items: int) -> NDArray[np.float32] | None:
    """The item table that clients received: the shared one, or the first client's own."""
    for _, axis, content in fields_of(download):
        if not isinstance(content, np.ndarray) or content.dtype.kind != "f":
            continue
        if axis is Axis.SHARED and content.ndim == 2 and len(content) == n_items:
            return content
        if axis is Axis.CLIENT and content.ndim == 3 and content.shape[1] == n_items:
            return np.asarray(content[0])
    return None


def _changed(upload: Any, change: Any) -> Any:
    """The upload with every protected field's numbers changed."""
    fields: dict[str, Any] = {}
    for spec, name, content in contents(upload):
        if not spec.metadata.get("protect", True):
            continue
        if isinstance(content, Rows):
            fields[name] = dataclasses.replace(content, values=change(content.values))
        elif isinstance(content, np.ndarray) and content.dtype.kind == "f":
            fields[name] = change(content)
    return with_fields(upload, fields)
