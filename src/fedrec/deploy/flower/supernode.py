"""Flower's part of a node, with shorter waits while there is something to do.

    python -m fedrec.deploy.flower.supernode (arguments of flower-supernode)

Flower's loop waits three seconds after every look that found no message, and half a second before every look for the
answer. A secure sum is six exchanges one after the other: most of a round would be these waits.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

QUICK, AT_REST = 0.2, 30.0
"""Seconds to wait after a message, and without one after which Flower's own waits are taken again."""
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
        self._sleep(min(seconds, QUICK) if self._clock() - self._busy < AT_REST else seconds)

    def __getattr__(self, name: str) -> Any:
        return getattr(time, name)


def main() -> None:
    from flwr.supernode import start_client_internal
    from flwr.supernode.cli import flower_supernode

    loop: Any = start_client_internal
    loop.time = Waits()
    flower_supernode()


if __name__ == "__main__":
    main()
