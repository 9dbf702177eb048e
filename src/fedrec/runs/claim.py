"""A folder of its own for a run whose folder nobody named, also where several begin at once."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from fedrec.runs.atomic import writing_to


@contextmanager
def claimed(base: Path, name: str) -> Iterator[Path]:
    """``base/name``, or with the first free number behind it.

    It is made at once, because only one of several can make a folder; what stays empty is gone in the end, so that bad
    input leaves nothing behind.
    """
    with writing_to(base / name, "--out"):
        new = not base.exists()
        path = _made(base, name)
    try:
        yield path
    finally:
        with suppress(OSError):  # it is in use
            path.rmdir()
            if new:
                base.rmdir()


def _made(base: Path, name: str) -> Path:
    path, number = base / name, 2
    while True:
        path.parent.mkdir(parents=True, exist_ok=True)
        try:
            path.mkdir()
        except FileExistsError:
            path, number = base / f"{name}-{number}", number + 1
        else:
            return path
