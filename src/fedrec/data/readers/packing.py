"""How a file is packed: told by its first bytes, so that a name that says something else does no harm."""

from __future__ import annotations

import gzip
import re
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO, cast

from fedrec.data import archives, limits
from fedrec.errors import BadInput

READ = ((b"\x1f\x8b\x08", ".gz"), (b"PK\x03\x04", ".zip"), (b"PK\x05\x06", ".zip"))
"""First bytes of packings that are read."""
NOT_READ = (
    (rb"BZh[1-9](1AY&SY|\x17rE8P\x90)", "bzip2"),
    (rb"\xfd7zXZ\x00", "xz"),
    (rb"\x28\xb5\x2f\xfd", "zstd"),
    (rb"7z\xbc\xaf\x27\x1c", "7-Zip"),
)
"""First bytes of those that are not: the memory that some of them take is theirs to say."""
SHEETS = (".xlsx", ".xlsm", ".xlsb", ".ods")
PARQUET = b"PAR1"
"""First and last bytes of a Parquet file."""


@contextmanager
def opened(path: Path) -> Iterator[tuple[IO[bytes], int]]:
    """The file to read from, unpacked, and how many bytes may come out of it."""
    try:
        if path.exists() and not path.is_file():
            raise BadInput(f"{path} is not a plain file; give a file that can be read twice")
        packed = path.stat().st_size
        kind = kind_of(path)
        if kind == ".gz":
            with gzip.open(path, "rb") as file:
                yield cast(IO[bytes], file), limits.unpacked(packed)
        elif kind == ".zip":
            with archives.only_member(path) as found:
                yield found
        else:
            if packed > limits.largest():
                raise limits.too_large(path, limits.largest())
            with path.open("rb") as plain:
                yield plain, limits.largest()
    except archives.BROKEN as problem:
        reason = problem.strerror if isinstance(problem, OSError) and problem.strerror else str(problem)
        raise BadInput(f"cannot read {path}: {limits.brief(reason or type(problem).__name__, 80)[1:-1]}") from problem


def kind_of(path: Path) -> str:
    """'.gz', '.zip' or nothing; one that is not read is refused by its name."""
    with path.open("rb") as file:
        first = file.read(10)
    kind = next((kind for mark, kind in READ if first.startswith(mark)), "")
    if kind == ".zip" and path.suffix.lower() in SHEETS:
        raise BadInput(f"{path} is a spreadsheet; save the sheet as CSV (user,item,rating,timestamp)")
    for mark, name in NOT_READ:
        if re.match(mark, first):
            raise BadInput(f"{path} is packed with {name}, which is not read; unpack it, or pack it with gzip (.gz)")
    return kind or (path.suffix.lower() if path.suffix.lower() in (".gz", ".zip") else "")


def is_parquet(path: Path) -> bool:
    """Whether a file that is not packed is Parquet, whatever its name."""
    with path.open("rb") as file:
        if file.read(len(PARQUET)) != PARQUET:
            return False
        file.seek(-len(PARQUET), 2)
        return file.read() == PARQUET and file.tell() > 2 * len(PARQUET)
