"""Files that are there whole or not at all, whatever kills the process; and folders that are their user's alone."""

from __future__ import annotations

import errno
import os
import stat
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

from fedrec.errors import BadInput

NO_LINK = getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_NONBLOCK", 0)
"""A link is not followed, and a pipe that nobody reads not waited for; Windows has neither flag."""
_NO_ROOM = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG)
_NOT_OURS = (errno.EROFS, errno.EACCES, errno.EPERM)
_GONE = (errno.ENOENT, errno.ENOTDIR)
_NOT_PLAIN = "{} is a link, a pipe or a device, and is not written to; put a plain file there, or remove it"


class Unwritable(BadInput):
    """Nothing can be written there; ``strerror`` is why."""

    def __init__(self, line: str, strerror: str) -> None:
        super().__init__(line)
        self.strerror = strerror


@contextmanager
def room_for(path: Path) -> Iterator[None]:
    """A disk that is full, a place that cannot be written to, and a folder that is gone are said in one line."""
    try:
        yield
    except OSError as problem:
        why = problem.strerror or str(problem)
        if problem.errno in _NO_ROOM:
            advice = "make room, what was there before is whole"
            raise BadInput(f"no room to write {path} ({why}); {advice}") from None
        if problem.errno in _NOT_OURS:
            advice = "make it writable, or work on a copy; what was there before is whole"
            raise Unwritable(f"cannot write {path} ({why}); {advice}", why) from None
        if problem.errno in _GONE and not path.parent.is_dir():
            raise Unwritable(f"{path.parent} is gone: it was moved or removed while it was written to", why) from None
        raise


@contextmanager
def writing_to(folder: Path, other: str) -> Iterator[None]:
    """A place that cannot be written to is said in one line; ``other`` is what to choose another of."""
    try:
        yield
    except (OSError, Unwritable) as problem:
        raise BadInput(f"cannot write to {folder}: {problem.strerror}; choose another {other}") from None


def why_unwritable(folder: Path) -> str | None:
    """Why nothing can be written into a folder, which need not be there yet; None where something can."""
    try:
        while not folder.exists():
            folder = folder.parent
        if not folder.is_dir():
            return f"{folder} is a file"
        with tempfile.TemporaryFile(dir=folder):
            return None
    except OSError as problem:
        return problem.strerror or str(problem)


def why_no_file(path: Path) -> str | None:
    """Why :func:`replace_file` could not write a file here; None where it could."""
    if path.exists() and not (path.is_file() or path.is_dir()):  # a device or a pipe
        return None
    place = (path.resolve() if path.is_symlink() else path).parent
    if path.is_dir() or not place.is_dir():
        return ""
    return why_unwritable(place)


def replace_file(path: Path, write: Callable[[Path], Any], *, private: bool = False) -> None:
    """Let ``write`` fill a temporary neighbour, bring it to the disk, then give it the name that somebody asked for.

    A link stays one: what it points to is replaced. A device or a pipe, such as /dev/stdout, is written to.
    With ``private`` nobody else can read the file, at no moment; what is private lies in a folder of ours
    (:func:`keep_file`).
    """
    if private:
        keep_file(path, write, private=True)
    elif path.exists() and not (path.is_file() or path.is_dir()):
        with room_for(path):
            write(path)
    else:
        keep_file(path.resolve() if path.is_symlink() else path, write)


def keep_file(path: Path, write: Callable[[Path], Any], *, private: bool = False) -> None:
    """The same for a file of a folder of ours, whose names we choose: whatever has the name is replaced itself.

    The folder may be somebody else's work, and a link in it lead to any file of the user's.
    """
    temporary = path.with_name(f".{path.name}.{os.getpid()}.tmp")
    try:
        with room_for(path):
            temporary.unlink(missing_ok=True)
            os.close(os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600 if private else 0o666))
            write(temporary)
            with open(temporary, "rb+") as handle:
                os.fsync(handle.fileno())
            try:
                os.replace(temporary, path)
            except IsADirectoryError:
                raise BadInput(f"cannot write {path}: a folder of that name is in its place; remove it") from None
    finally:
        with suppress(OSError):  # where nothing can be written, nothing can be removed; resuming clears it
            temporary.unlink(missing_ok=True)
    with room_for(path):
        _keep_entry(path.parent)


def _keep_entry(folder: Path) -> None:
    """Bring a folder's new entry to the disk, where a folder can be opened: on Windows none can."""
    try:
        handle = os.open(folder, os.O_RDONLY)
    except PermissionError:
        return
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


def write_text(path: Path, text: str, *, private: bool = False) -> None:
    """Write a text file atomically."""
    replace_file(path, lambda temporary: temporary.write_text(text, encoding="utf-8"), private=private)


def keep_text(path: Path, text: str, *, private: bool = False) -> None:
    """The same for a file of a folder of ours (:func:`keep_file`)."""
    keep_file(path, lambda temporary: temporary.write_text(text, encoding="utf-8"), private=private)


def plain_opener(path: str, flags: int, mode: int = 0o666) -> int:
    """For ``open(..., opener=plain_opener)``: a file of a folder of ours that is written in place.

    A link, which may lead to any file of the user's, and a pipe or a device are bad input.
    """
    try:
        handle = os.open(path, flags | NO_LINK, mode)
    except OSError as problem:
        if problem.errno not in (errno.ELOOP, errno.ENXIO):
            raise
        raise BadInput(_NOT_PLAIN.format(path)) from None
    if not stat.S_ISREG(os.fstat(handle).st_mode):
        os.close(handle)
        raise BadInput(_NOT_PLAIN.format(path))
    return handle


def private_opener(path: str, flags: int) -> int:
    """The same, and a file that is made can be read by its user alone."""
    return plain_opener(path, flags, 0o600)


def private_folder(path: Path, mark: str | None = None) -> None:
    """A folder that only its user can open. An existing one is closed to others if it is empty or has ``mark`` in it.

    Any other folder is somebody's own, given as it is: only the files written into it are private.
    """
    path.parent.mkdir(parents=True, exist_ok=True)
    try:
        path.mkdir(mode=0o700)
    except FileExistsError:
        ours = path.is_dir() and path.stat().st_uid == os.getuid()
        if ours and (not any(path.iterdir()) or (mark is not None and (path / mark).exists())):
            path.chmod(0o700)


def clear_leftovers(folder: Path) -> None:
    """Remove temporary files of a process that was killed while writing."""
    for leftover in folder.glob(".*.tmp"):
        if leftover.is_symlink() or not leftover.is_dir():  # a folder of that name is not ours
            leftover.unlink(missing_ok=True)
