"""Zip files from strangers: read member by member in bounded steps, never unpacked by their own paths."""

from __future__ import annotations

import lzma
import stat
import zipfile
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path, PurePosixPath
from typing import IO

from fedrec.data import limits
from fedrec.errors import BadInput

MEMBERS = 10_000
BROKEN = (
    zipfile.BadZipFile, zlib.error, lzma.LZMAError, EOFError, OSError, ValueError, OverflowError, MemoryError, KeyError,
    IndexError, RuntimeError,  # the last for a password, or a compression that is not built in
)  # fmt: skip
"""What Python's reader raises for a damaged archive, depending on where the damage is."""


def members(archive: zipfile.ZipFile, said: str) -> dict[str, zipfile.ZipInfo]:
    """The files of an archive by their last name; one that could lead outside, or is a link, is refused."""
    found: dict[str, zipfile.ZipInfo] = {}
    if len(archive.infolist()) > MEMBERS:
        raise BadInput(f"{said} holds {len(archive.infolist())} files; at most {MEMBERS} are looked at")
    for info in archive.infolist():
        path = PurePosixPath(info.filename.replace("\\", "/"))
        if path.is_absolute() or ".." in path.parts or (path.parts and ":" in path.parts[0]):
            raise BadInput(f"{said} names a file outside itself ({limits.brief(info.filename)}): not unpacked")
        if stat.S_ISLNK(info.external_attr >> 16):
            raise BadInput(f"{said} holds a link ({limits.brief(info.filename)}): not unpacked")
        if info.is_dir():
            continue
        if info.flag_bits & 1:
            raise BadInput(f"{said} is locked with a password: unpack it by hand")
        found.setdefault(path.name, info)
    return found


@contextmanager
def only_member(path: Path) -> Iterator[tuple[IO[bytes], int]]:
    """The one file in an archive, opened, and the bytes it may unpack to."""
    with zipfile.ZipFile(path) as archive:
        members(archive, str(path))  # says what is wrong with any of them
        inside = [info for info in archive.infolist() if not info.is_dir() and "__MACOSX" not in info.filename]
        inside = [info for info in inside if not PurePosixPath(info.filename).name.startswith(".")]
        if len(inside) != 1:
            names = [PurePosixPath(info.filename).name for info in inside]
            names = names if len(set(names)) == len(names) else [info.filename for info in inside]
            raise BadInput(f"{path} holds {len(inside)} files ({limits.names(names, 4)}); pack one file, or none")
        info = inside[0]
        with archive.open(info) as file:
            yield file, limits.unpacked(info.compress_size)


def copy_member(archive: zipfile.ZipFile, info: zipfile.ZipInfo, out: IO[bytes], said: str) -> None:
    """Unpack one file in bounded steps."""
    limit, done = limits.unpacked(info.compress_size), 0
    if info.file_size > limit:
        raise limits.too_large(said, limit)
    with archive.open(info) as file:
        while chunk := file.read(limits.MIB):
            done += len(chunk)
            if done > limit:
                raise limits.too_large(said, limit)
            out.write(chunk)
