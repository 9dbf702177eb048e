"""Sums over clients, folded as uploads come; in 64 bits, so that the order does not matter."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from fedrec.core.messages import Array, Rows
from fedrec.extras import installed
from fedrec.threads import on_threads, thread_count

Float64 = NDArray[np.float64]

SUM_LEAST = 1 << 14
"""Numbers of a table that are worth a thread of their own."""


def add_rows(total: Float64, rows: Rows, weights: NDArray[np.floating[Any]] | None = None) -> None:
    """``total[i] += sum over clients of weight * change of row i``, in place; total is ``[n_items, d]``."""
    clients = rows.n_clients
    if clients and len(rows.ids) == clients * rows.n_items:  # whole tables
        tables = rows.values.reshape(clients, rows.n_items, -1)
        if weights is None:
            add_clients(total, tables)
            return
        for c in range(clients):  # a loop over views keeps memory at one table
            total += tables[c] * np.float64(weights[c])
        return
    if not len(rows.ids):
        return
    if int(rows.ids.min()) < 0 or int(rows.ids.max()) >= len(total):
        raise ValueError(f"rows name an item that is none of {len(total)}")
    each = np.ones(clients) if weights is None else np.ascontiguousarray(weights, np.float64)
    if not installed("numba"):
        from scipy.sparse import csc_matrix

        of_row = np.repeat(each, np.diff(rows.start))  # one entry a column: every row is added without sorting
        place = csc_matrix((of_row, rows.ids, np.arange(len(rows.ids) + 1)), shape=(rows.n_items, len(rows.ids)))
        total += place @ rows.values.astype(np.float64)
        return
    from fedrec.core.fold_kernel import add_weighted

    into = total if total.flags.c_contiguous else np.zeros(total.shape)  # the kernel writes whole rows
    add_weighted(
        into,
        np.ascontiguousarray(rows.start),
        np.ascontiguousarray(rows.ids, np.int32),
        np.ascontiguousarray(rows.values),
        each,
    )
    if into is not total:
        total += into


def weighted_sum(stack: NDArray[Any], weights: NDArray[np.floating[Any]] | None = None) -> Float64:
    """Sum over the leading (client) axis, in 64 bits."""
    values = stack.astype(np.float64)
    if weights is None:
        return np.asarray(values.sum(0))
    return np.tensordot(np.asarray(weights, np.float64), values, axes=(0, 0))


def add_clients(total: Float64, changes: Array) -> None:
    """``total += the sum over clients``, in 64 bits; threads take parts of the table, so that sums stay the same."""
    threads = thread_count()
    into, each = total.reshape(-1), changes.reshape(len(changes), -1)
    size = max(SUM_LEAST, -(-len(into) // threads))

    def part(first: int) -> None:
        own = slice(first, first + size)
        into[own] += each[:, own].sum(0, dtype=np.float64)

    if len(into) <= size:
        part(0)
        return
    on_threads(part, [(first,) for first in range(0, len(into), size)], threads)
