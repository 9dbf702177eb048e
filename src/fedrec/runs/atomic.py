"""Files that are there whole or not at all, whatever kills the process."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path


def replace_file(path: Path, write: Callable[[Path], None]) -> None:
    """Let ``write`` fill a temporary neighbour, bring it to the disk, then give it the name.

    A link stays one: what it points to is replaced. A device or a pipe, such as /dev/stdout, is written to.
    """
    if path.exists() and not (path.is_file() or path.is_dir()):
        return write(path)
    if path.is_symlink():
        path = path.resolve()
    temporary = path.with_name(f".{path.name}.{os.getpid()}.tmp")
    try:
        write(temporary)
        with open(temporary, "rb+") as handle:
            os.fsync(handle.fileno())
        os.replace(temporary, path)
    finally:
        temporary.unlink(missing_ok=True)
    folder = os.open(path.parent, os.O_RDONLY)
    try:
        os.fsync(folder)
    finally:
        os.close(folder)


def write_text(path: Path, text: str) -> None:
    """Write a text file atomically."""

    def write(temporary: Path) -> None:
        temporary.write_text(text, encoding="utf-8")

    replace_file(path, write)


def clear_leftovers(folder: Path) -> None:
    """Remove temporary files of a process that was killed while writing."""
    for leftover in folder.glob(".*.tmp"):
        leftover.unlink(missing_ok=True)
