"""Whose turn it is to be answered."""

from __future__ import annotations

import asyncio
import threading
from pathlib import Path
from typing import Any

import pytest

import fedrec as package
from fedrec.serve.asking import Ask
from fedrec.serve.batches import Batches
from fedrec.serve.counts import Counts
from fedrec.serve.sources import RunSource
from fedrec.serve.waiting import AT_ONCE, FEWEST, MOMENT, Queue, Waiting


def asked(*users: str | None) -> list[Waiting]:
    """Asks of one request; None is somebody new."""
    loop = asyncio.new_event_loop()
    try:
        return [(Ask(1, user=user) if user else Ask(1, history=("i001",)), loop.create_future()) for user in users]
    finally:
        loop.close()


def named(some: list[Waiting]) -> list[str | None]:
    return [ask.user for ask, _ in some]


def test_requests_take_turns_and_each_keeps_its_order() -> None:
    queue = Queue()
    queue.add(asked("a1", "a2", "a3"))
    queue.add(asked())
    queue.add(asked("b1"))
    queue.add(asked("c1", "c2"))
    assert len(queue) == 6
    assert named(queue.next()) == ["a1", "b1", "c1", "a2", "c2", "a3"]
    assert len(queue) == 0
    assert queue.next() == []


def test_a_batch_has_a_size_and_few_who_are_new() -> None:
    queue = Queue()
    queue.add(asked(*[None] * 100))
    queue.add(asked(*["u"] * 300))
    first = named(queue.next())
    assert len(first) == AT_ONCE
    assert first.count(None) == FEWEST
    second = named(queue.next())
    assert (second.count("u"), second.count(None)) == (300 - AT_ONCE + FEWEST, FEWEST)


def test_as_many_new_people_as_a_moment_allows() -> None:
    queue = Queue()
    queue.add(asked(*[None] * 1000))
    queue.took(queue.next(), FEWEST * MOMENT / 100)  # a hundred in a moment
    assert len(queue.next()) == 100
    for _ in range(30):
        queue.took(asked(None), 10 * MOMENT)  # they have become slow
    assert len(queue.next()) == FEWEST
    queue.took(asked("u"), 10 * MOMENT)  # says nothing of the new ones
    for _ in range(60):
        queue.took(asked(None), 1e-9)
    assert len(queue.next()) == AT_ONCE


def test_who_has_gone_takes_no_place() -> None:
    queue, request = Queue(), asked("a1", None, "a2")
    queue.add(request)
    queue.add(asked("b1"))
    for _, future in request[:2]:
        future.cancel()
    assert named(queue.next()) == ["b1", "a2"]
    assert len(queue) == 0


def test_a_thousand_histories_keep_nobody_waiting(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """All of them were answered first."""
    package.run("fedspectral", data="demo", rounds=1, out=tmp_path / "run", settings={"k": 4})

    async def scene() -> list[int]:
        source, done = Batches(RunSource(tmp_path / "run"), Counts()), 0
        answer = source.model.answer

        def slow(asks: Any) -> Any:
            nonlocal done
            done += sum(ask.user is None for ask in asks)
            return answer(asks)

        source.model.answer = slow  # type: ignore[method-assign]
        monkeypatch.setattr(Queue, "_new_at_once", FEWEST)
        source.start()
        histories = source.submit(*[Ask(1, history=("i001",))] * 1000)
        user = source.submit(Ask(1, user="u001"))
        await user[0]
        before = done
        await asyncio.gather(*histories)
        await source.stop()
        return [before, done]

    before, all_ = asyncio.run(scene())
    assert before <= 2 * FEWEST
    assert all_ == 1000


def test_looking_for_a_newer_model_keeps_nobody_waiting(tmp_path: Path) -> None:
    """An update's data is compared with the model's: seconds, in which nobody was answered."""
    package.run("fedspectral", data="demo", rounds=1, out=tmp_path / "run", settings={"k": 4})

    async def scene() -> set[str]:
        source = Batches(RunSource(tmp_path / "run"), Counts(), look=0.01)
        looked: list[str] = []
        mark = source.source.mark
        source.source.mark = lambda: (looked.append(threading.current_thread().name), mark())[1]  # type: ignore[method-assign, func-returns-value]
        source.start()
        while not looked:
            await asyncio.sleep(0.01)
        await source.stop()
        return set(looked)

    assert threading.main_thread().name not in asyncio.run(scene())
