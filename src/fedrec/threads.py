"""Running a kernel that releases the interpreter's lock over pieces of a block, on several threads.

Threads of our own rather than numba's: work is taken as threads become free (clients differ forty-fold in
size), any thread may call it, and kernels compile in a fraction of the time.
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Iterable
from concurrent.futures import ThreadPoolExecutor, wait
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fedrec.errors import BadInput

PIECES_PER_THREAD = 8
VARIABLE = "FEDREC_THREADS"
"""Environment variable: how many threads a process computes with."""
MOST = 4096
"""Threads that anybody may ask for."""


def thread_count(threads: int | None = None) -> int:
    """Threads to use: as asked, else ``FEDREC_THREADS``, else the cores this process may run on."""
    if threads is None:
        threads = chosen()
    if threads is None:
        has_affinity = hasattr(os, "sched_getaffinity")
        threads = len(os.sched_getaffinity(0)) if has_affinity else os.cpu_count() or 1
    return max(1, threads)


def chosen() -> int | None:
    """The number of threads that a person set, or None."""
    text = os.environ.get(VARIABLE, "").strip()
    if not text:
        return None
    number = int(text) if re.fullmatch("[0-9]{1,9}", text) else 0
    if not 1 <= number <= MOST:
        right = f"write 1 to {MOST}, or leave it out for all cores"
        raise BadInput(f"{VARIABLE}={text[:40]!r} is not a number of threads; {right}")
    return number


def pieces(cost: NDArray[np.number], count: int) -> list[NDArray[np.int64]]:
    """Clients dealt by falling cost into ``count`` pieces of about equal cost; within one, the largest first."""
    falling = np.argsort(-cost, kind="stable").astype(np.int64)
    return [falling[first::count].copy() for first in range(min(count, len(cost)))]


_pools: dict[int, ThreadPoolExecutor] = {}
"""By number of threads. They stay: starting them took milliseconds a call, and a round makes thousands of calls."""

if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_pools.clear)  # a child process has none of its parent's threads


def on_threads(function: Callable[..., Any], calls: Iterable[tuple[Any, ...]], threads: int | None = None) -> None:
    """Make every call, several at once; whichever fails, nobody writes any more when this returns.

    Not from within such a call: it would wait for the thread that it holds.
    """
    threads = thread_count(threads)
    if threads not in _pools:
        _pools[threads] = ThreadPoolExecutor(threads, thread_name_prefix="fedrec-kernel")
    running = [_pools[threads].submit(function, *arguments) for arguments in calls]
    wait(running)
    for one in running:
        one.result()


def over_pieces(
    kernel: Callable[..., Any], cost: NDArray[np.number], arguments: tuple[Any, ...], threads: int | None = None
) -> None:
    """Call ``kernel(clients, *arguments)`` until every client has been handled once."""
    threads = thread_count(threads)
    if threads == 1 or len(cost) < 2:
        kernel(np.argsort(-cost, kind="stable").astype(np.int64), *arguments)
        return
    on_threads(kernel, [(some, *arguments) for some in pieces(cost, threads * PIECES_PER_THREAD)], threads)


def over_rows(kernel: Callable[..., Any], rows: int, arguments: tuple[Any, ...], threads: int | None = None) -> None:
    """Call ``kernel(rows, *arguments)`` until every row of an array has been handled once, neighbours together."""
    threads = thread_count(threads)
    if threads == 1 or rows < 4 * threads:
        kernel(np.arange(rows), *arguments)
        return
    on_threads(kernel, [(some, *arguments) for some in np.array_split(np.arange(rows), 4 * threads)], threads)
