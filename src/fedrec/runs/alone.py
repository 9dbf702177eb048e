"""One writer at a time: a folder in which a process makes runs, or the one run that it makes."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from fedrec.errors import BadInput


@contextmanager
def alone(folder: Path) -> Iterator[None]:
    """Nobody else works in this folder meanwhile; that somebody does is bad input. It is made where it is not there.

    The folder itself is locked, so that there is no file to be left behind, and a killed process lets go of it.
    """
    try:
        import fcntl
    except ImportError:  # Windows has no such lock
        yield
        return
    try:
        folder.mkdir(parents=True, exist_ok=True)
        handle = os.open(folder, os.O_RDONLY)
    except OSError as problem:
        raise BadInput(f"cannot write to {folder}: {problem.strerror}; choose another --out") from None
    try:
        try:
            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise BadInput(f"another fedrec works in {folder}; wait for it, or choose another --out") from None
        except OSError:  # a file system without locks
            pass
        yield
    finally:
        os.close(handle)
