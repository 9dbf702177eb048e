"""Threads that kernels share: they stay from call to call, outlive failures, and a forked process has its own."""

from __future__ import annotations

import os
import threading
import time

import numpy as np
import pytest

from fedrec.threads import on_threads, over_pieces


def test_threads_stay_from_call_to_call() -> None:
    seen: set[int] = set()
    for _ in range(5):
        on_threads(lambda _: seen.add(threading.get_ident()), [(part,) for part in range(8)], threads=2)
    assert len(seen) <= 2


def test_all_calls_have_ended_when_one_fails() -> None:
    ended = []

    def call(part: int) -> None:
        if part == 0:
            raise RuntimeError("the first fails at once")
        time.sleep(0.05)
        ended.append(part)

    with pytest.raises(RuntimeError, match="at once"):
        on_threads(call, [(part,) for part in range(4)], threads=2)
    assert sorted(ended) == [1, 2, 3]
    on_threads(call, [(5,)], threads=2)  # and the threads are fit for the next


@pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork here")
@pytest.mark.filterwarnings("ignore:This process .* is multi-threaded:DeprecationWarning")
def test_a_forked_process_has_threads_of_its_own() -> None:
    """Its parent's threads are not in it: who waits for them waits for ever."""
    done = np.zeros(6)

    def mark(parts: np.ndarray, into: np.ndarray) -> None:
        into[parts] = 1

    over_pieces(mark, np.ones(6), (done,), threads=2)
    child = os.fork()
    if child == 0:
        own = np.zeros(6)
        over_pieces(mark, np.ones(6), (own,), threads=2)
        os._exit(0 if own.all() else 1)
    for _ in range(200):
        ended, status = os.waitpid(child, os.WNOHANG)
        if ended:
            break
        time.sleep(0.05)
    else:
        os.kill(child, 9)
        os.waitpid(child, 0)
        pytest.fail("the forked process waits for threads that it does not have")
    assert os.waitstatus_to_exitcode(status) == 0
    assert done.all()
