"""Running a kernel that releases the interpreter's lock over pieces of a block, on several threads.

Threads of our own rather than numba's: work is taken as threads become free (clients differ forty-fold in
size), any thread may call it, and kernels compile in a fraction of the time.
"""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fedrec.core.threads import thread_count

PIECES_PER_THREAD = 8


def pieces(cost: NDArray[np.number], count: int) -> list[NDArray[np.int64]]:
    """Clients dealt by falling cost into ``count`` pieces of about equal cost; within one, the largest first."""
    falling = np.argsort(-cost, kind="stable").astype(np.int64)
    return [falling[first::count].copy() for first in range(min(count, len(cost)))]


def over_pieces(
    kernel: Callable[..., Any], cost: NDArray[np.number], arguments: tuple[Any, ...], threads: int | None = None
) -> None:
    """Call ``kernel(clients, *arguments)`` until every client has been handled once."""
    threads = thread_count(threads)
    if threads == 1 or len(cost) < 2:
        kernel(np.argsort(-cost, kind="stable").astype(np.int64), *arguments)
        return
    with ThreadPoolExecutor(threads) as pool:
        running = [pool.submit(kernel, clients, *arguments) for clients in pieces(cost, threads * PIECES_PER_THREAD)]
        for piece in running:
            piece.result()
