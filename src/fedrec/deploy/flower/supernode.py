"""Flower's part of a node, with shorter waits while there is something to do, and never an answer behind.

    python -m fedrec.deploy.flower.supernode (arguments of flower-supernode)

Flower's loop waits three seconds after every look that found no message, and half a second before every look for the
answer. A secure sum is six exchanges one after the other: most of a round would be these waits.

The loop sends whatever answer is there after it has received a message. Where a run is stopped while a message is being
received, the message is called ignored and answered all the same: that answer goes out after the next message, the
next one's after the one that follows, and from then on every answer comes a message too late.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

QUICK, GROWTH = 0.2, 0.25
"""Seconds to wait right after a message; later, this share of the time since then, up to Flower's own wait. So an
answer is late by a quarter of the time it took, and fifty nodes of one machine do not fill it with looking."""
IDLE = 1.0
"""Flower waits longer than this only where there was no message."""


class Waits:
    """Stands in for ``time`` in Flower's loop."""

    def __init__(
        self, clock: Callable[[], float] = time.monotonic, sleep: Callable[[float], None] = time.sleep
    ) -> None:
        self._clock, self._sleep, self._busy = clock, sleep, clock()

    def sleep(self, seconds: float) -> None:
        if seconds < IDLE:  # waits for the answer to a message
            self._busy = self._clock()
        self._sleep(min(seconds, max(QUICK, GROWTH * (self._clock() - self._busy))))

    def __getattr__(self, name: str) -> Any:
        return getattr(time, name)


class InStep:
    """Stands in for the two halves of Flower's loop: after a message, until that message is answered."""

    def __init__(self, pull: Callable[..., int | None], push: Callable[..., None]) -> None:
        self._pull, self._push = pull, push
        self._received = ""

    def pull(self, *, receive: Callable[[], Any], **others: Any) -> int | None:
        def noting() -> Any:
            found = receive()
            if found is not None:
                self._received = found[0].metadata.message_id
            return found

        return self._pull(receive=noting, **others)

    def push(self, *, send: Callable[..., Any], **others: Any) -> None:
        answered: set[str] = set()

        def noting(message: Any, *more: Any) -> Any:
            answered.add(message.metadata.reply_to_message_id)
            return send(message, *more)

        while self._received not in answered:
            self._push(send=noting, **others)


def main() -> None:
    from flwr.supernode import start_client_internal
    from flwr.supernode.cli import flower_supernode

    loop: Any = start_client_internal
    loop.time = Waits()
    in_step = InStep(loop._pull_and_store_message, loop._push_messages)
    loop._pull_and_store_message, loop._push_messages = in_step.pull, in_step.push
    flower_supernode()


if __name__ == "__main__":
    main()
