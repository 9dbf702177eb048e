"""Delimited text, read at full speed, and gone through again line by line only to name a bad one."""

from __future__ import annotations

import csv
import gzip
import io
import re
import zlib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from fedrec.errors import BadInput

if TYPE_CHECKING:
    import pyarrow as pa

_LONG = "\x1f"
"""Stands for '::' while a file is being read: the fast parser takes one character only."""


def contents(path: Path, size: int = -1) -> bytes:
    """The file, or its first ``size`` bytes, unpacked where its name ends in .gz."""
    try:
        with gzip.open(path, "rb") if path.suffix == ".gz" else path.open("rb") as file:
            data = file.read(size)
    except (OSError, EOFError, zlib.error) as problem:
        reason = problem.strerror if isinstance(problem, OSError) and problem.strerror else str(problem)
        raise BadInput(f"cannot read {path}: {reason}") from problem
    if not data.strip():
        raise BadInput(f"{path} is empty; it needs at least one interaction")
    return data.removeprefix(b"\xef\xbb\xbf")


@dataclass(frozen=True)
class Table:
    """A delimited file in memory, with what is needed to take it apart."""

    path: Path
    data: bytes
    delimiter: str
    quoted: bool = True
    encoding: str = "utf-8"
    escape: str | None = None

    @staticmethod
    def open(
        path: Path,
        delimiter: str,
        *,
        quoted: bool = True,
        encoding: str = "utf-8",
        escape: str | None = None,
    ) -> Table:
        """Read ``path``; ``delimiter`` is one character, '::', or ' ' for any run of blanks."""
        data = contents(path)
        if delimiter == "::":
            return Table(path, data.replace(b"::", _LONG.encode()), _LONG, False, encoding)
        if delimiter == " ":
            if re.search(rb"[ \t]{2}|\t|[ \t]\r?\n|\n[ \t]|^[ \t]|[ \t]$", data):
                data = re.sub(rb"(?m)^[ \t]+|[ \t]+(?=\r?$)", b"", re.sub(rb"[ \t]+", b" ", data))
            return Table(path, data, " ", False, encoding)
        return Table(path, data, delimiter, quoted, encoding, escape)

    def lines(self) -> Iterator[tuple[int, list[str]]]:
        """Line number (from 1) and cells of each line that is not empty. Slow and exact."""
        text = io.TextIOWrapper(io.BytesIO(self.data), encoding=self.encoding, newline="")
        reader = csv.reader(
            text,
            delimiter=self.delimiter,
            quoting=csv.QUOTE_MINIMAL if self.quoted else csv.QUOTE_NONE,
            escapechar=self.escape,
        )
        while True:
            try:
                cells = next(reader)
            except StopIteration:
                return
            except UnicodeDecodeError as problem:
                line = self.data.count(b"\n", 0, problem.start) + 1
                # the decoder works in chunks, so the position is exact only in the whole text
                try:
                    self.data.decode(self.encoding)
                except UnicodeDecodeError as exact:
                    line = self.data.count(b"\n", 0, exact.start) + 1
                raise BadInput(f"{self.path} line {line}: not {self.encoding} text") from problem
            except csv.Error as problem:
                raise BadInput(f"{self.path} line {reader.line_num}: {problem}") from problem
            if cells:
                yield reader.line_num, cells

    def place(self, row: int, header_lines: int) -> str:
        """'file line N' of the row with this index (from 0), not counting the header."""
        for index, (line, _) in enumerate(self.lines()):
            if index == row + header_lines:
                return f"{self.path} line {line}"
        return f"{self.path} row {row + 1}"

    def without_torn_end(self, expected: int) -> Table:
        """The table less a last line that breaks off (no line end, too few cells), or the table itself."""
        start = self.data.rfind(b"\n") + 1
        if 0 < start < len(self.data) and self.data[start:].count(self.delimiter.encode()) < expected - 1:
            return replace(self, data=self.data[:start])
        return self

    def columns(self, names: Sequence[str], header_lines: int) -> pa.Table:
        """All rows as text columns; a row with another number of cells is bad input."""
        import pyarrow as pa
        from pyarrow import csv as arrow

        skip = 0
        if header_lines:
            skip = next((line for i, (line, _) in enumerate(self.lines()) if i == header_lines - 1), 0)
        try:
            found = arrow.read_csv(
                pa.BufferReader(self.data),
                read_options=arrow.ReadOptions(
                    column_names=list(names), skip_rows=skip, encoding=self.encoding, block_size=1 << 24
                ),
                parse_options=arrow.ParseOptions(
                    delimiter=self.delimiter,
                    quote_char='"' if self.quoted else False,
                    double_quote=self.escape is None,
                    escape_char=self.escape or False,
                ),
                convert_options=arrow.ConvertOptions(
                    column_types={name: pa.string() for name in names}, strings_can_be_null=False
                ),
            )
        except (pa.ArrowInvalid, UnicodeDecodeError) as problem:
            raise self._first_bad(len(names), header_lines, str(problem)) from problem
        if found.num_rows == 0:
            raise BadInput(f"{self.path} has a header and no rows; it needs at least one interaction")
        return found

    def _first_bad(self, expected: int, header_lines: int, said: str) -> BadInput:
        try:
            for index, (line, cells) in enumerate(self.lines()):
                if index < header_lines:
                    continue
                if len(cells) != expected:
                    shown = self.delimiter.replace(_LONG, "::").join(cells)[:60]
                    return BadInput(
                        f"{self.path} line {line}: {len(cells)} columns where {expected} are expected: {shown!r}"
                    )
        except BadInput as bad:
            return bad
        return BadInput(f"cannot read {self.path}: {said.splitlines()[0]}")


def numbers(column: pa.ChunkedArray) -> tuple[NDArray[np.float64], int | None]:
    """Text as finite numbers, and the first row (from 0) that is none."""
    import pyarrow as pa
    import pyarrow.compute as pc

    trimmed = pc.utf8_trim_whitespace(column)
    try:
        values = np.asarray(pc.cast(trimmed, pa.float64()).to_numpy(), dtype=np.float64)
    except pa.ArrowInvalid:
        values = np.array([_number(text) for text in trimmed.to_pylist()], dtype=np.float64)
    bad = ~np.isfinite(values)
    return values, int(bad.argmax()) if bad.any() else None


def _number(text: str | None) -> float:
    try:
        return float(text or "nan")
    except ValueError:
        return float("nan")


def moments(column: pa.ChunkedArray) -> tuple[NDArray[np.int64] | NDArray[np.float64], int | None]:
    """Text as times (numbers as they are, ISO dates as seconds since 1970), and the first bad row."""
    import pyarrow as pa
    import pyarrow.compute as pc

    trimmed = pc.utf8_trim_whitespace(column)
    try:
        return np.asarray(pc.cast(trimmed, pa.int64()).to_numpy(), dtype=np.int64), None
    except pa.ArrowInvalid:
        pass
    values, bad = numbers(trimmed)
    if bad is None:
        return values, None
    for kind in (pa.timestamp("us"), pa.timestamp("us", "UTC")):
        try:
            when = pc.cast(pc.cast(trimmed, kind), pa.int64())
        except pa.ArrowInvalid:
            continue
        return np.asarray(when.to_numpy(), dtype=np.float64) / 1e6, None
    return values, bad if np.isfinite(values).any() else _first_undated(trimmed.to_pylist())


def _first_undated(texts: Sequence[str]) -> int:
    from datetime import datetime

    for row, text in enumerate(texts):
        try:
            datetime.fromisoformat(text)
        except ValueError:
            return row
    return 0
