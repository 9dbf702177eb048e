"""One writer at a time: a folder in which a process makes runs, the one run that it makes, or a file of its own."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from fedrec.errors import BadInput
from fedrec.runs.atomic import writing_to

try:
    import fcntl
except ImportError:  # Windows has no such lock
    fcntl = None  # type: ignore[assignment]


@contextmanager
def alone(folder: Path, option: str = "--out") -> Iterator[None]:
    """Nobody else works in this folder meanwhile; that somebody does is bad input. It is made where it is not there.

    The folder itself is locked, so that there is no file to be left behind, and a killed process lets go of it.
    """
    if fcntl is None:
        yield
        return
    with writing_to(folder, option):
        folder.mkdir(parents=True, exist_ok=True)
        handle = os.open(folder, os.O_RDONLY)
    try:
        if not locked(handle):
            raise BadInput(f"another fedrec works in {folder}; wait for it, or choose another {option}")
        yield
    finally:
        os.close(handle)


def locked(handle: int) -> bool:
    """Lock what is open until it is closed; False where another has it. Where there are no locks, everybody gets it."""
    try:
        if fcntl is not None:
            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    except OSError:  # a file system without locks
        pass
    return True
