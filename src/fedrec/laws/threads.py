"""Law 3: the number of threads changes nothing."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from fedrec.core.loop import Progress
from fedrec.laws.broken import Comparison
from fedrec.laws.small_runs import plan, run, simulator, world
from fedrec.methods.registry import find
from fedrec.threads import VARIABLE

WIDE = {"dim": 64, "epochs": 2, "batch_size": 256}
"""Settings with which a block of `demo` is cut into several chunks, so that threads have something to share."""

ALL = 1000
"""More clients than there are: one block."""


def same_with_any_threads(method: str) -> None:
    """Law 3: one thread or five of the engine give the same bits; torch's own threads only round otherwise."""
    law = Comparison("3", method)
    (alone, one), (crowd, five), (wide, three) = (_with(method, *count) for count in ((1, 1), (5, 1), (1, 3)))
    law.metrics(alone, crowd, "with five threads")
    law.states(one, five, "with five threads", step=0)
    law.metrics(alone, wide, "with three threads of torch")
    law.states(one, three, "with three threads of torch")


def _with(method: str, threads: int, torch_threads: int) -> tuple[Progress, Any]:
    kind: Any = find(method)
    settings = {key: value for key, value in WIDE.items() if key in kind.Settings.model_fields}
    if "chunk" in kind.small:  # chunks are a setting, and the method says how wide a small run of it is
        settings |= {key: value for key, value in kind.small.items() if key in ("chunk", "dim")}
    with threads_set(threads, torch_threads):
        sim = simulator(method, world("demo"), settings=settings, block_clients=ALL)
        return run(sim, plan(1)), sim.snapshot()


@contextmanager
def threads_set(threads: int, torch_threads: int) -> Iterator[None]:
    """So many threads of the engines and of torch; they take turns often."""
    import torch

    before = os.environ.get(VARIABLE), torch.get_num_threads(), sys.getswitchinterval()
    os.environ[VARIABLE] = str(threads)
    torch.set_num_threads(torch_threads)
    sys.setswitchinterval(1e-5)
    try:
        yield
    finally:
        os.environ.pop(VARIABLE)
        if before[0] is not None:
            os.environ[VARIABLE] = before[0]
        torch.set_num_threads(before[1])
        sys.setswitchinterval(before[2])
