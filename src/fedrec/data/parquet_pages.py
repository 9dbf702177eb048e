"""What the pages of a Parquet file unpack to, before one of them is unpacked.

The footer says so too, but nothing holds its writer to that, and reading believes it. The header in front of each page
is another matter: so many bytes are taken for the page, and one that unpacks to more is an error. The footer is read
here too: where a piece of it is damaged, asking pyarrow for that piece ends the process.
"""

from __future__ import annotations

import os
from collections.abc import Collection, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, BinaryIO

from fedrec.data.compact import BadStruct, Struct, struct, structs, whole

NAMES = 1 << 24
"""Bytes of names, and number of things, in a file's own description."""
OPTIONS: dict[str, Any] = {
    "thrift_string_size_limit": NAMES,
    "thrift_container_size_limit": NAMES,
    "page_checksum_verification": True,
}
"""How every file is opened (``pyarrow.parquet.ParquetFile``)."""

_PIECE, _LONGEST = 1 << 10, 1 << 24
"""Bytes of a page's header that are read at first, and at most."""
_GROUPS, _COLUMNS, _ABOUT = 4, 1, 3
"""Fields: the groups of rows in a footer, the columns in a group, what is said about a column."""
_VALUES, _PACKED, _DATA_AT, _DICTIONARY_AT = 5, 7, 9, 11
"""Of a column: its number of values, bytes, and where its pages begin."""
_TYPE, _SIZE, _PACKED_SIZE = 1, 2, 3
"""Of a page."""
_ENCODING = {0: (5, 2), 3: (8, 4)}
"""Where a page of data says more about itself, by its type, and in which field of that is the encoding."""
_DIFFERENCES = (6, 7)
"""Encodings of texts (DELTA_LENGTH_BYTE_ARRAY, DELTA_BYTE_ARRAY) whose counts and beginnings make much of little."""


@dataclass(frozen=True)
class Pages:
    """What the pages of some columns take."""

    size: int
    """Bytes of all, unpacked."""
    differences: tuple[str, ...]
    """Columns whose values may take more than their pages; pyarrow cannot read them with a dictionary either."""


def pages_of(path: Path, schema: Any, wanted: Collection[str] | None = None) -> Pages:
    """The pages of some columns, or of all; ``schema`` is the file's (``pyarrow.parquet.ParquetSchema``)."""
    names = [schema.column(number).path for number in range(len(schema))]
    size, differences = 0, dict[str, None]()
    with open(path, "rb") as file:
        for group in structs(_footer(file), _GROUPS):
            columns = structs(group, _COLUMNS)
            if len(columns) != len(names):
                raise BadStruct("its groups of rows have different columns")
            for name, column in zip(names, columns, strict=True):
                if wanted is not None and not _among(name, wanted):
                    continue
                for taken, encoding in _walk(file, column.get(_ABOUT)):
                    size += taken
                    if encoding in _DIFFERENCES:
                        differences[name] = None
    return Pages(size, tuple(differences))


def _among(name: str, wanted: Collection[str]) -> bool:
    """Whether a column is read when these are asked for: pyarrow takes ``user.age`` for a part of ``user``."""
    parts = name.split(".")
    return any(".".join(parts[: count + 1]) in wanted for count in range(len(parts)))


def _footer(file: BinaryIO) -> Struct:
    end = os.fstat(file.fileno()).st_size
    file.seek(max(0, end - 8))
    tail = file.read(8)
    length = int.from_bytes(tail[:4], "little")
    if tail[4:] != b"PAR1" or length > end - 8:
        raise BadStruct("it does not end as such a file does, or is encrypted")
    file.seek(end - 8 - length)
    try:
        return struct(file.read(length))[0]
    except IndexError:
        raise BadStruct("its description is cut short") from None


def _walk(file: BinaryIO, about: Any) -> Iterator[tuple[int, int]]:
    """Bytes and encoding of each page of a column's piece, from where reading begins to where it ends."""
    if not isinstance(about, dict):
        raise BadStruct("nothing is said about a column, or it is encrypted")
    place, values, seen = whole(about, _DATA_AT, 63), whole(about, _VALUES, 63), 0
    dictionary = whole(about, _DICTIONARY_AT, 63) if _DICTIONARY_AT in about else 0
    if 0 < dictionary < place:
        place = dictionary
    end = min(os.fstat(file.fileno()).st_size, place + whole(about, _PACKED, 63))
    while seen < values and place < end:
        header, length = _header(file, place)
        packed = whole(header, _PACKED_SIZE)
        inner, field = _ENCODING.get(whole(header, _TYPE), (0, 0))
        encoding = 0
        if inner:
            more = header.get(inner)
            if not isinstance(more, dict):
                raise BadStruct("a page does not say what is in it")
            seen, encoding = seen + whole(more, 1), whole(more, field)
        yield max(whole(header, _SIZE), packed), encoding
        place += length + packed


def _header(file: BinaryIO, place: int) -> tuple[Struct, int]:
    """The header that begins somewhere, and its length."""
    piece = _PIECE
    while True:
        file.seek(place)
        data = file.read(piece)
        try:
            return struct(data)
        except IndexError:
            if len(data) < piece or piece >= _LONGEST:
                raise BadStruct("the header of a page is cut short") from None
            piece *= 16
