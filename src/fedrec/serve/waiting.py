"""Who waits for an answer: one of each request in turn, and of people who are new only as many as a moment allows.

For somebody new a model may have to train. Without turns, a request with a thousand histories kept everybody else
waiting until the last of them was answered.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Iterable

from fedrec.serve.asking import Ask
from fedrec.serve.model import Answer

AT_ONCE = 256
"""Asks answered together, at most."""
MOMENT = 0.25
"""Seconds that the new people among them may take, all together."""
FEWEST = 32
"""New people that are answered together all the same: a batch of them has costs of its own."""

Waiting = tuple[Ask, "asyncio.Future[Answer]"]


class Queue:
    """Asks and where their answers go, by the request that they came with."""

    def __init__(self) -> None:
        self._requests: deque[deque[Waiting]] = deque()
        self._count = 0
        self._seconds = 0.0
        """That somebody new took lately."""

    def __len__(self) -> int:
        return self._count

    def add(self, asked: Iterable[Waiting]) -> None:
        """What one request asks."""
        request = deque(asked)
        if request:
            self._count += len(request)
            self._requests.append(request)

    def next(self) -> list[Waiting]:
        """Whom to answer together; not those who have gone meanwhile."""
        some: list[Waiting] = []
        new, passed = 0, 0
        while passed < len(self._requests) and len(some) < AT_ONCE:
            request = self._requests.popleft()
            if request[0][0].user is None and new >= self._new_at_once:
                passed += 1
                self._requests.append(request)
                continue
            ask, future = request.popleft()
            self._count -= 1
            if request:
                self._requests.append(request)
            if not future.done():
                passed = 0
                some.append((ask, future))
                new += ask.user is None
        return some

    def took(self, some: list[Waiting], seconds: float) -> None:
        """How long it took to answer these."""
        if new := sum(ask.user is None for ask, _ in some):
            self._seconds = (self._seconds + seconds / new) / 2 if self._seconds else seconds / new

    @property
    def _new_at_once(self) -> int:
        return max(FEWEST, int(MOMENT / self._seconds)) if self._seconds else FEWEST
