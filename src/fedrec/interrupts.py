"""What ends work from outside: Ctrl-C, and a termination signal, which ends it in the same way."""

from __future__ import annotations

import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any


class Terminated(KeyboardInterrupt):
    """A termination signal."""


def saying(why: KeyboardInterrupt, line: str) -> KeyboardInterrupt:
    """The same with a line of its own, in place of `interrupted`."""
    return type(why)(line)


@contextmanager
def terminable() -> Iterator[None]:
    """A termination signal meanwhile is raised as an interrupt is, so that what was started is stopped, too."""
    ours = threading.current_thread() is threading.main_thread()
    if not ours or signal.getsignal(signal.SIGTERM) is not signal.SIG_DFL:
        yield
        return

    def stop(number: int, frame: Any) -> None:
        raise Terminated

    signal.signal(signal.SIGTERM, stop)
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, signal.SIG_DFL)
