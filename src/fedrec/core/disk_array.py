"""Arrays that live in a file: for private state of a population that does not fit into memory.

They behave as arrays everywhere (views, gather and scatter, saving). A deep copy is another file, so that a
snapshot of a large population costs disk, not memory.
"""

from __future__ import annotations

import errno
import mmap
import os
import shutil
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fedrec.core.messages import fields_of
from fedrec.errors import BadInput

PIECE_BYTES = 1 << 24
"""How much of an array on disk is in memory at a time."""


class DiskArray(np.memmap):
    """An array in a file without a name: it goes when the array goes, also after a crash."""

    folder: str | None = None

    def __array_finalize__(self, obj: Any) -> None:
        super().__array_finalize__(obj)
        self.folder = getattr(obj, "folder", None)

    def __deepcopy__(self, memo: dict[int, Any] | None) -> Any:
        if _mapping(self) is None:  # a result that was computed
            return np.array(self)
        copy = on_disk(self.shape, self.dtype, self.folder, reserve=True)
        copy_pieces(self, copy)
        return copy


def on_disk(
    shape: tuple[int, ...], dtype: Any, folder: str | os.PathLike[str] | None = None, *, reserve: bool = False
) -> DiskArray:
    """An array of zeros in a nameless file below ``folder`` (the system's temporary folder by default).

    ``reserve``: of an array that is about to be written as a whole, all of the file's room is taken now: a disk that
    is full later ends the process where it stands, without a word (SIGBUS).
    """
    if folder is not None:
        Path(folder).mkdir(parents=True, exist_ok=True)
    size = max(1, int(np.prod(shape, dtype=np.int64)) * np.dtype(dtype).itemsize)
    with tempfile.TemporaryFile(dir=folder, prefix="fedrec-private-") as file:
        file.truncate(size)
        if reserve:
            _reserve(file.fileno(), size, folder)
        array = DiskArray(file, dtype=dtype, mode="r+", shape=shape)
    array.folder = None if folder is None else str(folder)
    return array


def _reserve(file: int, size: int, folder: str | os.PathLike[str] | None) -> None:
    if not hasattr(os, "posix_fallocate"):  # not on macOS and Windows
        return
    try:
        os.posix_fallocate(file, 0, size)
    except OSError as problem:
        if problem.errno not in (errno.ENOSPC, errno.EDQUOT):
            return  # a file system that cannot
        place = tempfile.gettempdir() if folder is None else str(folder)
        free = shutil.disk_usage(place).free
        raise BadInput(
            f"{size / 1e6:,.0f} MB do not fit into {place}, where {free / 1e6:,.0f} MB are free; "
            "set TMPDIR to a folder with more room, or allow more memory (--memory-mb, the method's *_budget_mb)"
        ) from None


def pieces(array: NDArray[Any], count: int | None = None) -> Iterator[slice]:
    """Slices of the first axis (or of ``count`` of its rows), of some megabytes each."""
    rows = max(1, PIECE_BYTES // max(1, array.nbytes // max(1, len(array))))
    for first in range(0, len(array) if count is None else count, rows):
        yield slice(first, first + rows)


def fill(array: NDArray[Any], value: Any) -> None:
    """``array[:] = value`` without holding all of an array on disk in memory."""
    copy_pieces(np.broadcast_to(value, array.shape), array)


def copy_pieces(source: NDArray[Any], into: NDArray[Any]) -> None:
    """``into[:] = source``, the same way."""
    for part in pieces(source):
        into[part] = source[part]
        forget(source)
        forget(into)


def _mapping(array: Any) -> Any:
    """What maps an array's file; None where the array lies in memory."""
    return getattr(array, "_mmap", None)


def forget(array: Any) -> None:
    """Let the system take back the memory behind an array on disk, or a view of one; its content stays."""
    mapping = _mapping(array) or _mapping(getattr(array, "base", None))
    if mapping is not None and hasattr(mmap, "MADV_DONTNEED"):
        mapping.madvise(mmap.MADV_DONTNEED)  # a shared mapping: pages go back to the file, not to nothing


def forget_fields(state: Any) -> None:
    """The same for all that a state holds."""
    for _, _, content in fields_of(state):
        forget(content)


def zeros(shape: tuple[int, ...], budget: Budget, *, reserve: bool = False) -> NDArray[np.float32]:
    """Zeros in memory while the budget lasts, on disk after; ``reserve`` as of :func:`on_disk`."""
    size = 4 * int(np.prod(shape, dtype=np.int64))
    if size <= budget.left:
        budget.left -= size
        return np.zeros(shape, np.float32)
    return on_disk(shape, np.float32, budget.folder, reserve=reserve)


def columns(array: NDArray[Any], place: slice, rows: NDArray[Any] | None = None) -> NDArray[Any]:
    """``array[rows, place]``, all rows by default: a view where that can be, of an array on disk a copy.

    A page of a file brings its neighbours along, so that one stripe of all rows may bring the whole array.
    """
    if _mapping(array) is None:
        return array[:, place] if rows is None else array[rows, place]
    wanted = np.arange(len(array)) if rows is None else rows
    found = np.empty((len(wanted), *array[:0, place].shape[1:]), array.dtype)
    for part in pieces(array, len(wanted)):
        found[part] = array[wanted[part], place]
        forget(array)
    return found


def put_columns(array: NDArray[Any], place: slice, rows: NDArray[Any] | None, values: NDArray[Any]) -> None:
    """``array[rows, place] = values``, the same way."""
    if _mapping(array) is None:
        array[slice(None) if rows is None else rows, place] = values
        return
    wanted = np.arange(len(array)) if rows is None else rows
    for part in pieces(array, len(wanted)):
        array[wanted[part], place] = values[part]
        forget(array)


def copied(array: NDArray[np.float32], budget: Budget) -> NDArray[np.float32]:
    """A copy in memory while the budget lasts, on disk after."""
    made = zeros(array.shape, budget, reserve=True)
    copy_pieces(array, made)
    return made


class Budget:
    """How much memory private state may take before it goes to disk."""

    def __init__(self, megabytes: float, folder: str | None = None) -> None:
        self.left = int(megabytes * (1 << 20))
        self.folder = folder
