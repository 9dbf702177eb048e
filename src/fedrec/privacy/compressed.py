"""What a compressed field looks like on the wire, and how it unfolds.

Each form keeps the leading axis of the field it stands for (clients, users), and is all that the receiver
needs: :meth:`restore` gives the plain field back.
"""

from __future__ import annotations

from abc import abstractmethod
from dataclasses import dataclass
from math import prod

import numpy as np
from numpy.typing import NDArray

from fedrec.core import misfit
from fedrec.core.messages import Array, Float32, Rows, Wire, per_client, shared
from fedrec.core.wire import rows_of_tables
from fedrec.data.ragged import Int64, offsets


class Compressed(Wire):
    """A field in fewer bytes."""

    @abstractmethod
    def require(self, name: str, entries: int, shape: tuple[int, ...], table: bool) -> None:
        """Refuse (:class:`~fedrec.core.misfit.Misfit`) what does not unfold into so many entries of this shape.

        Nothing is unfolded for it: a form of a few bytes may stand for any number.
        """

    @abstractmethod
    def restore(self) -> Rows | Array:
        """The plain field, as near as the form allows."""


@dataclass(frozen=True)
class TopK(Compressed):
    """The largest coordinates: entry ``e`` of the leading axis keeps ``indices[start[e]:start[e + 1]]``.

    Indices count through one entry's numbers (row-major, ascending). For item rows the leading axis is
    clients and ``shape`` is ``[n_items, d]``; for an array it is the array's own, ``shape`` the rest.
    """

    start: Int64 = per_client()  # [entries + 1]
    indices: NDArray[np.integer] = per_client()  # [kept]
    values: Float32 = per_client()  # [kept]
    shape: Int64 = shared()  # of one entry
    table: bool = shared()
    """Whether the field was item rows."""

    def require(self, name: str, entries: int, shape: tuple[int, ...], table: bool) -> None:
        misfit.flat(name, self.shape, "i")
        misfit.flat(name, self.values, "f")
        misfit.require(
            self.table == table and tuple(self.shape.tolist()) == shape,
            f"{name} unfolds into {self.shape.tolist()[:4]}, not {list(shape)}",
        )
        misfit.require(len(self.indices) == len(self.values), f"{name} has not an index for each number")
        misfit.cut(name, self.start, entries, len(self.values))
        misfit.ascending(name, self.start, self.indices, prod(shape))

    def restore(self) -> Rows | Array:
        entries = len(self.start) - 1
        owner = np.repeat(np.arange(entries), np.diff(self.start))
        if not self.table:
            numbers = np.zeros((entries, prod(self.shape.tolist())), self.values.dtype)
            numbers[owner, self.indices] = self.values
            return numbers.reshape(entries, *self.shape.tolist())
        n_items, dim = self.shape.tolist()
        item, column = np.divmod(self.indices.astype(np.int64), dim)
        place = owner * n_items + item  # ascends: client after client, item after item
        fresh = np.ones(len(place), bool)
        fresh[1:] = place[1:] != place[:-1]
        values = np.zeros((int(fresh.sum()), dim), self.values.dtype)
        values[np.cumsum(fresh) - 1, column] = self.values
        counts = np.bincount(owner[fresh], minlength=entries)
        return Rows(offsets(counts), item[fresh].astype(np.int32), values, n_items)


@dataclass(frozen=True)
class LowRank(Compressed):
    """A table change ``left @ right`` per client; the rows of ``right`` are orthonormal."""

    left: Rows | Float32 = per_client()  # rows of width r, or [clients, n, r]
    right: Float32 = per_client()  # [clients, r, d]

    def require(self, name: str, entries: int, shape: tuple[int, ...], table: bool) -> None:
        factors = [self.right, self.left.values if isinstance(self.left, Rows) else self.left]
        misfit.require(all(f.dtype.kind == "f" for f in factors), f"{name} has factors that are not floating numbers")
        rank = self.right.shape[1] if self.right.ndim == 3 else 0
        misfit.require(
            len(shape) == 2 and 1 <= rank <= shape[1] and self.right.shape == (entries, rank, shape[1]),
            f"{name} unfolds with factors {self.right.shape}, not into {list(shape)}",
        )
        if isinstance(self.left, Rows):
            misfit.require(table, f"{name} is rows, not an array")
            misfit.rows(name, self.left, entries, shape[0], rank)
            return
        misfit.require(
            not table and self.left.shape == (entries, shape[0], rank),
            f"{name} unfolds with factors {self.left.shape}, not into {list(shape)}",
        )

    def restore(self) -> Rows | Array:
        if not isinstance(self.left, Rows):
            return self.left @ self.right
        start, right = self.left.start, self.right
        values = np.empty((len(self.left.ids), right.shape[2]), right.dtype)
        for client, table in enumerate(right):
            rows = slice(start[client], start[client + 1])
            values[rows] = self.left.values[rows] @ table
        return Rows(start, self.left.ids, values, self.left.n_items)


@dataclass(frozen=True)
class Quantised(Compressed):
    """Whole tables ``[clients, n_items, d]`` or an array, in steps: number = code * scale of its entry."""

    codes: NDArray[np.int8] = per_client()  # [entries, ...]
    scale: Float32 = per_client()  # [entries]
    table: bool = shared()
    """Whether the field was item rows."""

    def require(self, name: str, entries: int, shape: tuple[int, ...], table: bool) -> None:
        misfit.flat(name, self.scale, "f")
        misfit.require(
            self.table == table and self.codes.shape == (entries, *shape) and len(self.scale) == entries,
            f"{name} has codes {self.codes.shape}, not {(entries, *shape)}",
        )
        misfit.require(self.codes.dtype == np.int8, f"{name} has codes of {self.codes.dtype}, not int8")

    def restore(self) -> Rows | Array:
        scale = self.scale.reshape(-1, *(1 for _ in self.codes.shape[1:]))
        numbers = self.codes * scale
        return rows_of_tables(numbers) if self.table else numbers


@dataclass(frozen=True)
class QuantisedRows(Compressed):
    """Changed rows in steps: number = code * scale of its client."""

    start: Int64 = per_client()  # [clients + 1]
    ids: NDArray[np.int32] = per_client()  # [rows]
    codes: NDArray[np.int8] = per_client()  # [rows, d]
    scale: Float32 = per_client()  # [clients]
    catalogue: int = shared()
    """Number of items in the whole table."""

    def require(self, name: str, entries: int, shape: tuple[int, ...], table: bool) -> None:
        misfit.flat(name, self.scale, "f")
        misfit.require(table and len(shape) == 2 and self.catalogue == shape[0], f"{name} is not rows of this table")
        fits = self.codes.dtype == np.int8 and self.codes.shape == (len(self.ids), shape[1])
        misfit.require(fits and len(self.scale) == entries, f"{name} has codes {self.codes.shape} of rows")
        misfit.cut(name, self.start, entries, len(self.ids))
        misfit.ascending(name, self.start, self.ids, shape[0])

    def restore(self) -> Rows:
        by_row = np.repeat(self.scale, np.diff(self.start))
        return Rows(self.start, self.ids, self.codes * by_row[:, None], self.catalogue)


FORMS: dict[str, type[Compressed]] = {kind.__name__: kind for kind in (TopK, LowRank, Quantised, QuantisedRows)}
"""All forms by name, for a decoder."""
