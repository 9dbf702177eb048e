"""Law 3 has teeth: its runs give several threads work to share, and what depends on their number breaks it."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from functools import partial
from types import ModuleType
from typing import Any

import pytest

from fedrec.laws.broken import LawBroken
from fedrec.laws.threads import same_with_any_threads, threads_set
from fedrec.learn.kernel import call
from fedrec.learn.torch import batched
from fedrec.methods.two_views import train as two_views
from fedrec.threads import over_pieces, thread_count

TORCH_ENGINES = [pytest.param("fediar", batched, id="batched"), pytest.param("fed3cr", two_views, id="two-views")]
KERNELS = ["fedavg", "fedncf", "fedlightgcn"]
USERS_OUT = 11
"""Where kernels write users, among their arguments."""


@pytest.mark.parametrize(("name", "engine"), TORCH_ENGINES)
def test_chunks_are_several(name: str, engine: ModuleType, monkeypatch: pytest.MonkeyPatch) -> None:
    """With one chunk threads would have nothing to share, and the law nothing to say."""
    real, seen = engine.over_chunks, []

    def count(train: Callable[..., Any], chunks: list[Any], *rest: Any) -> None:
        seen.append(len(chunks))
        real(train, chunks, *rest)

    monkeypatch.setattr(engine, "over_chunks", count)
    same_with_any_threads(name)
    assert min(seen) > 1


@pytest.mark.parametrize(("name", "engine"), TORCH_ENGINES)
def test_what_a_thread_remembers_breaks_it(name: str, engine: ModuleType, monkeypatch: pytest.MonkeyPatch) -> None:
    """Scratch of a thread that its first chunk finds empty and the next one does not."""
    real = engine.over_chunks

    def spoil(train: partial[None], chunks: list[Any], *rest: Any) -> None:
        mine = threading.local()

        def spoilt(clients: Any) -> None:
            time.sleep(0.02)  # until every thread has a chunk
            train(clients)
            if not getattr(mine, "used", False):
                job = train.args[0]
                (job.users_out if engine is batched else job.out.users)[clients[0]] += 1e-6
            mine.used = True

        real(spoilt, chunks, *rest)

    monkeypatch.setattr(engine, "over_chunks", spoil)
    with pytest.raises(LawBroken, match="with five threads"):
        same_with_any_threads(name)


@pytest.mark.parametrize("name", KERNELS)
def test_a_piece_that_is_more_than_its_clients_breaks_it(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """The kernels' pieces are cut by the number of threads: their first clients must not be special."""
    real = over_pieces

    def spoil(kernel: Callable[..., Any], cost: Any, arguments: tuple[Any, ...], threads: int | None = None) -> None:
        def spoilt(clients: Any, *given: Any) -> None:
            kernel(clients, *given)
            given[USERS_OUT][clients[0]] += 1e-6

        real(spoilt, cost, arguments, threads)

    monkeypatch.setattr(call, "over_pieces", spoil)
    with pytest.raises(LawBroken, match="with five threads"):
        same_with_any_threads(name)


def test_threads_are_set_and_set_back() -> None:
    import torch

    before = thread_count(), torch.get_num_threads()
    with threads_set(5, 3):
        assert (thread_count(), torch.get_num_threads()) == (5, 3)
    assert (thread_count(), torch.get_num_threads()) == before
