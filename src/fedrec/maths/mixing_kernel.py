"""The mixture of tables where most weights are zero (numba): rows are picked and added, zeros never touched."""

from __future__ import annotations

import os
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np
from numba import njit
from numpy.typing import NDArray

WIDTH = 64
"""Numbers of a table in one slice: all clients' slices together stay in a core's cache."""


@njit(nogil=True, cache=True, fastmath={"contract", "nsz"})
def _mix_slice(start, ids, weights, rows, tables, begin, end, held):  # type: ignore[no-untyped-def]
    """``tables[rows[u], begin:end] = sum_v w_uv tables[rows[v], begin:end]``; ``held`` is ``[n, WIDTH]``."""
    n, width = len(start) - 1, end - begin
    for v in range(n):
        for j in range(width):
            held[v, j] = tables[rows[v], begin + j]
    total = np.empty(held.shape[1], np.float32)
    for u in range(n):
        total[:] = 0
        for entry in range(start[u], start[u + 1]):
            weight, source = weights[entry], ids[entry]
            for j in range(held.shape[1]):  # the whole width, whose length the compiler can count on
                total[j] += weight * held[source, j]
        for j in range(width):
            tables[rows[u], begin + j] = total[j]


def mix_sparse(
    tables: NDArray[np.float32], start: NDArray[Any], ids: NDArray[Any], weights: NDArray[Any], rows: NDArray[Any]
) -> None:
    """Mix the tables ``[clients, numbers]`` at ``rows`` in place; weights as CSR over these rows.

    Threads take slices of the tables, so none waits for another.
    """
    numbers = tables.shape[1]
    given = (start.astype(np.int64), ids.astype(np.int32), weights.astype(np.float32), rows.astype(np.int64))

    def work(first: int, step: int) -> None:
        held = np.zeros((len(rows), WIDTH), np.float32)
        for begin in range(first * WIDTH, numbers, step * WIDTH):
            _mix_slice(*given, tables, begin, min(begin + WIDTH, numbers), held)

    threads = max(1, len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1)
    with ThreadPoolExecutor(threads) as pool:
        for done in [pool.submit(work, first, threads) for first in range(threads)]:
            done.result()
