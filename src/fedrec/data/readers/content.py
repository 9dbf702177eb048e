"""What a file holds: unpacked in bounded steps, as UTF-8 text whatever it was written in."""

from __future__ import annotations

import codecs
import re
from pathlib import Path

from fedrec.data import limits
from fedrec.data.readers import packing
from fedrec.errors import BadInput

STEP = 1 << 20
EXCEL = re.compile(rb'\A"?sep=[^\r\n]"?[ \t]*(?=\r|\n|\Z)', re.IGNORECASE)
"""A first line by which a file tells Excel its delimiter: no line of the table. Its end stays, so that lines count."""
END = b"\x1a"
"""Ctrl-Z, with which DOS ends a text."""
MARKS = (
    (codecs.BOM_UTF8, "utf-8"),
    (codecs.BOM_UTF32_LE, "utf-32"),
    (codecs.BOM_UTF32_BE, "utf-32"),
    (codecs.BOM_UTF16_LE, "utf-16"),
    (codecs.BOM_UTF16_BE, "utf-16"),
)
"""First bytes that name an encoding; UTF-32 before UTF-16, whose mark it begins with."""
_BEYOND_ASCII = re.compile(rb"[\xc2-\xdf][\x80-\xbf]|[\xe0-\xef][\x80-\xbf]{2}|[\xf0-\xf4][\x80-\xbf]{3}")


def contents(path: Path) -> bytes:
    """The whole file, unpacked where it is packed with gzip or zip."""
    data = bytearray()
    with packing.opened(path) as (file, limit):
        while chunk := file.read(STEP):
            data += chunk
            if len(data) > limit:
                raise limits.too_large(path, limit)
    if not data.strip():
        raise _empty(path)
    return bytes(data)


def head(path: Path, size: int) -> bytes:
    """The first ``size`` bytes from the first on that is not white space."""
    data = b""
    with packing.opened(path) as (file, _):
        passed = 0
        while len(data) < size and (chunk := file.read(size)):
            found = data + chunk if data else chunk.lstrip()
            passed += len(chunk) if not found else 0
            if passed > limits.BLANK:
                raise BadInput(f"{path} begins with more than {limits.size(limits.BLANK)} of white space")
            data = found
    if not data:
        raise _empty(path)
    return data[:size]


def _empty(path: Path) -> BadInput:
    return BadInput(f"{path} is empty; it needs at least one interaction")


def text(path: Path, encoding: str | None = None) -> tuple[bytes, str]:
    """A text file as UTF-8 with line ends that have a newline, and what it was written in.

    It is decoded by its mark, as ``encoding``, as UTF-8, or as Windows' cp1252 where it is not that.
    """
    data, written = as_utf8(contents(path), path, encoding)
    if data.endswith(END):
        data = data.rstrip(END)
    if b"\0" in data:
        line = line_of(data, data.index(b"\0"))
        raise BadInput(f"{path} line {line}: a NUL byte; this is no text, or UTF-16 without its mark: save it as UTF-8")
    if b"\n" not in data and b"\r" in data:
        data = data.replace(b"\r", b"\n")
    if not data.isascii() and b"\n" + codecs.BOM_UTF8 in data:  # files that were put behind one another
        data = data.replace(b"\n" + codecs.BOM_UTF8, b"\n")
    return data, written


def as_utf8(data: bytes, path: Path, encoding: str | None = None) -> tuple[bytes, str]:
    """The same text in UTF-8, and what it was written in."""
    for mark, name in MARKS:
        if data.startswith(mark):
            if name == "utf-8":
                data = data[len(mark) :]
                break
            try:
                return data.decode(name).encode("utf-8"), name
            except UnicodeError as problem:
                raise BadInput(f"{path} begins like {name} but is not; save it as UTF-8") from problem
    if data.isascii():
        return data, "utf-8"
    if encoding is not None:
        return data.decode(encoding).encode("utf-8"), encoding
    try:
        data.decode("utf-8")
        return data, "utf-8"
    except UnicodeDecodeError as problem:
        place = f"{path} line {line_of(data, problem.start)}"
    if _BEYOND_ASCII.search(data):
        raise BadInput(
            f"{place}: not utf-8 text: two encodings in one file, or another (Shift-JIS, GBK); save it as UTF-8"
        )
    try:
        return data.decode("cp1252").encode("utf-8"), "cp1252"
    except UnicodeDecodeError as problem:
        raise BadInput(f"{place}: neither utf-8 text nor cp1252; save it as UTF-8") from problem


def line_of(data: bytes, at: int) -> int:
    """The line (from 1) in which a byte stands."""
    return data.count(b"\n", 0, at) + 1


def refuse_long_lines(data: bytes, path: Path, most: int = limits.LINE) -> None:
    """Refuse a line of more than ``most`` bytes, without going through the lines one by one."""
    start = 0
    while len(data) - start > most:
        end = data.rfind(b"\n", start, start + most + 1)
        if end < 0:
            raise BadInput(f"{path} line {line_of(data, start)}: longer than {limits.size(most)}; is this a table?")
        start = end + 1
