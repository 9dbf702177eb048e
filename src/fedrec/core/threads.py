"""How many threads the engines use."""

from __future__ import annotations

import os

VARIABLE = "FEDREC_THREADS"


def thread_count(threads: int | None = None) -> int:
    """Threads to use: as asked, else ``FEDREC_THREADS``, else the cores this process may run on."""
    if threads is None:
        given = os.environ.get(VARIABLE, "")
        threads = int(given) if given.isdigit() and int(given) else None
    if threads is None:
        has_affinity = hasattr(os, "sched_getaffinity")
        threads = len(os.sched_getaffinity(0)) if has_affinity else os.cpu_count() or 1
    return max(1, threads)
