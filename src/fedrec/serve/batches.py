"""Asks that wait are answered together, by one thread; a newer model takes over between two batches."""

from __future__ import annotations

import asyncio
import logging
import time
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress

from fedrec.errors import BadInput
from fedrec.serve.asking import Ask, QueueFull
from fedrec.serve.counts import Counts
from fedrec.serve.model import Answer, Model
from fedrec.serve.sources import Mark, Source
from fedrec.serve.waiting import Queue

log = logging.getLogger("fedrec.serve")

WAITING = 4_096
"""Asks that may wait, at most."""
LOOK = 2.0
"""Seconds between two looks for a newer model."""


class Batches:
    """The queue in front of a model. All but the thread belongs to one event loop."""

    def __init__(self, source: Source, counts: Counts, waiting: int = WAITING, look: float = LOOK) -> None:
        self.source, self.counts, self.most_waiting, self.look = source, counts, waiting, look
        self.mark: Mark = source.mark()
        self.model: Model = source.open()
        self.queue = Queue()
        self._filled: asyncio.Event | None = None
        self._tasks: list[asyncio.Task[None]] = []
        self._thread = ThreadPoolExecutor(1, "fedrec-score")

    def start(self) -> None:
        """Begin to answer, in the running event loop."""
        self._filled = asyncio.Event()
        self._tasks = [asyncio.create_task(self._work()), asyncio.create_task(self._follow())]

    async def stop(self) -> None:
        for task in self._tasks:
            task.cancel()
            with suppress(asyncio.CancelledError):
                await task
        self._thread.shutdown()

    def submit(self, *asks: Ask) -> list[asyncio.Future[Answer]]:
        """Have all of these answered, or none where so many cannot wait."""
        assert self._filled is not None
        if len(self.queue) + len(asks) > self.most_waiting:
            raise QueueFull(f"{len(self.queue)} asks are waiting already; try again in a moment")
        loop = asyncio.get_running_loop()
        futures: list[asyncio.Future[Answer]] = [loop.create_future() for _ in asks]
        self.queue.add(zip(asks, futures, strict=True))
        self._filled.set()
        return futures

    async def _work(self) -> None:
        assert self._filled is not None
        loop = asyncio.get_running_loop()
        while True:
            await self._filled.wait()
            some, began = self.queue.next(), time.monotonic()
            if not self.queue:
                self._filled.clear()
            if not some:
                continue
            self.counts.batch(len(some))
            try:
                found = await loop.run_in_executor(self._thread, self.model.answer, [ask for ask, _ in some])
            except Exception as problem:
                log.error("a batch failed: %s: %s", type(problem).__name__, " ".join(str(problem).split()))
                for _, future in some:
                    if not future.done():
                        future.set_exception(problem)
                continue
            self.queue.took(some, time.monotonic() - began)
            for (_, future), answer in zip(some, found, strict=True):
                if not future.done():
                    future.set_result(answer)

    async def _follow(self) -> None:
        """Open a newer model beside the one that serves, and put it in its place."""
        said = ""
        while True:
            await asyncio.sleep(self.look)
            try:
                mark = await asyncio.to_thread(self.source.mark)  # an update's data is compared with the model's
                if mark == self.mark:
                    continue
                self.model = await asyncio.to_thread(self.source.open)
                self.mark, said = mark, ""
                self.counts.loaded += 1
                words = ", ".join(f"{key} {value}" for key, value in self.model.about.items())
                log.info("a newer model serves: %s", words)
            except Exception as problem:  # half-written, or gone: the one that serves goes on
                why = " ".join(str(problem).split()) if isinstance(problem, BadInput) else repr(problem)
                if why != said:
                    log.warning("the newer model cannot be opened, the old one goes on: %s", why)
                said = why
