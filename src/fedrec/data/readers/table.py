"""Delimited text, read at full speed, and gone through again line by line only to name a bad one."""

from __future__ import annotations

import csv
import io
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import pyarrow as pa
from pyarrow import csv as arrow

from fedrec.data import limits
from fedrec.data.readers import content, escapes
from fedrec.data.readers.faults import LISTED
from fedrec.errors import BadInput

_LONG = "\x1f"
"""Stands for '::' while a file is being read: the fast parser takes one character only."""
BLOCK = 16 * limits.MIB


@dataclass(frozen=True)
class Parsed:
    """Columns of text, and what is said of lines that did not have the right number of cells."""

    data: pa.Table
    torn: tuple[str, ...] = ()
    """The first of those lines, each with its place."""
    n_torn: int = 0


@dataclass(frozen=True)
class Table:
    """A delimited file in memory, with what is needed to take it apart."""

    path: Path
    data: bytes
    delimiter: str
    quoted: bool = True
    escape: str | None = None
    encoding: str = "utf-8"
    """What the file was written in; ``data`` is UTF-8."""
    n_blank: int = 0
    """Rows without anything in them that were taken out."""

    @staticmethod
    def open(
        path: Path, delimiter: str, *, quoted: bool = True, encoding: str | None = None, escape: str | None = None
    ) -> Table:
        """Read ``path``; ``delimiter`` is one character, '::', or ' ' for any run of blanks."""
        data, written = content.text(path, encoding)
        data = content.EXCEL.sub(b"", data, count=1)
        content.refuse_long_lines(data, path)
        if delimiter == "::":
            if _LONG.encode() in data:
                line = content.line_of(data, data.index(_LONG.encode()))
                raise BadInput(f"{path} line {line}: a control character (0x1f); '::' files have none")
            return Table(path, data.replace(b"::", _LONG.encode()), _LONG, False, None, written)
        if delimiter == " ":
            if re.search(rb"[ \t]{2}|\t|[ \t]\r?\n|\n[ \t]|^[ \t]|[ \t]$", data):
                data = re.sub(rb"(?m)^[ \t]+|[ \t]+(?=\r?$)", b"", re.sub(rb"[ \t]+", b" ", data))
            return Table(path, data, " ", False, None, written)
        if quoted and escape is None:
            data = escapes.doubled(data, delimiter)
        return Table(path, data, delimiter, quoted, escape, written)

    def lines(self) -> Iterator[tuple[int, list[str]]]:
        """Line number (from 1) and cells of each line that is not empty. Slow and exact."""
        reader = csv.reader(
            io.TextIOWrapper(io.BytesIO(self.data), encoding="utf-8", newline=""),
            delimiter=self.delimiter,
            quoting=csv.QUOTE_MINIMAL if self.quoted else csv.QUOTE_NONE,
            escapechar=self.escape,
        )
        while True:
            try:
                cells = next(reader)
            except StopIteration:
                return
            except csv.Error as problem:
                raise BadInput(f"{self.path} line {reader.line_num}: {problem}; is a quote left open?") from problem
            if cells:
                yield reader.line_num, cells

    def titles(self, expected: str = "") -> dict[str, str]:
        """Id to title, the first two cells of a line. A torn line is not as ``expected``; else it costs a title."""
        found: dict[str, str] = {}
        for line, cells in self.lines():
            if len(cells) > 1:
                found[cells[0]] = cells[1]
            elif expected:
                raise BadInput(f"{self.path} line {line}: expected {expected!r}")
        return found

    def first(self) -> list[str]:
        """The cells of the first line that is not empty."""
        for _, cells in self.lines():
            return cells
        raise BadInput(f"{self.path} is empty; it needs at least one interaction")

    def no_rows(self) -> BadInput:
        """The refusal of a table that has nothing below its header."""
        return BadInput(f"{self.path} has a header and no rows; it needs at least one interaction")

    def place(self, row: int, header_lines: int, expected: int | None = None) -> str:
        """'file line N' of the row with this index (from 0), not counting the header.

        ``expected``: rows with another number of cells are not counted either.
        """
        index = -header_lines
        for line, cells in self.lines():
            if index >= 0 and expected is not None and len(cells) != expected:
                continue
            if index == row:
                return f"{self.path} line {line}"
            index += 1
        return f"{self.path} row {row + 1}"

    def without_torn_end(self, expected: int) -> Table:
        """The table less a last line that breaks off (no line end, too few cells), or the table itself."""
        start = self.data.rfind(b"\n") + 1
        if 0 < start < len(self.data) and self.data[start:].count(self.delimiter.encode()) < expected - 1:
            return replace(self, data=self.data[:start])
        return self

    def without_blank_rows(self) -> Table:
        """The table less rows that have nothing in any cell, as Excel leaves them, or the table itself.

        Their line ends stay, so that lines count.
        """
        between = re.escape(self.delimiter.encode())
        # '++' goes back over nothing: a tab is a blank, too, and a row of them could be read in 2^n ways
        data, found = re.subn(rb'(?m)^(?:[ \t\x1a]|%b|"")++(?=\r?$)' % between, b"", self.data)
        return replace(self, data=data, n_blank=self.n_blank + found) if found else self

    def spaced(self, line: str) -> bool:
        """Whether a cell of this line has blanks before its quotes, which would be part of it."""
        mark, blank = re.escape(self.delimiter), self._blank
        return re.search(f'(?:^|{mark}){blank}+"[^"]*"{blank}*(?:{mark}|$)', line) is not None

    def without_blanks_before_quotes(self) -> Table:
        """The table less blanks between a delimiter and a quote."""
        mark, blank = re.escape(self.delimiter.encode()), self._blank.encode()
        return replace(self, data=re.sub(rb'(?m)(^|%b)%b+(?=")' % (mark, blank), rb"\1", self.data))

    @property
    def _blank(self) -> str:
        """What is a blank inside a cell."""
        return " " if self.delimiter == "\t" else r"[ \t]"

    def parse(self, names: Sequence[str], header_lines: int, wanted: Sequence[str], share: float = 0.0) -> Parsed:
        """The wanted columns as text; rows with another number of cells may be this share of all."""
        skip = 0
        if header_lines:
            skip = next((line for i, (line, _) in enumerate(self.lines()) if i == header_lines - 1), 0)
            if skip > self.data.count(b"\n"):  # the header is the last line and has no end
                raise self.no_rows()
        allowed = share * (self.data.count(b"\n") + 1 - skip)
        torn = 0

        def on_torn(row: Any) -> str:
            nonlocal torn
            torn += 1 + str(row.text).count("\n")  # an open quote takes the lines after it along
            return "skip" if torn <= allowed else "error"

        try:
            found = arrow.read_csv(
                pa.BufferReader(self.data),
                read_options=arrow.ReadOptions(column_names=list(names), skip_rows=skip, block_size=BLOCK),
                parse_options=arrow.ParseOptions(
                    delimiter=self.delimiter,
                    quote_char='"' if self.quoted else False,
                    double_quote=self.escape is None,
                    escape_char=self.escape or False,
                    newlines_in_values=self.quoted and b'"' in self.data,
                    invalid_row_handler=on_torn,
                ),
                convert_options=arrow.ConvertOptions(
                    column_types={name: pa.string() for name in names},
                    include_columns=list(wanted),
                    strings_can_be_null=False,
                ),
            )
        except (pa.ArrowException, UnicodeError, MemoryError) as problem:
            raise self._first_bad(len(names), header_lines, str(problem)) from problem
        if found.num_rows == 0:
            raise self.no_rows()
        if self.quoted and b'"' in self.data and self.data.count(b"\n") > found.num_rows + torn + skip:
            self._refuse_open_quotes()
        return Parsed(found, tuple(self._torn(len(names), header_lines)) if torn else (), torn)

    def _refuse_open_quotes(self) -> None:
        """Refuse a quote that nobody closed: the lines up to the next quote, or to the end, are one cell to a parser.

        It shows in a cell over several lines that goes on behind its closing quote, or never gets one.
        """
        text = io.TextIOWrapper(io.BytesIO(self.data), encoding="utf-8", newline="")
        reader, before = csv.reader(text, delimiter=self.delimiter, escapechar=self.escape, strict=True), 0
        while True:
            try:
                if next(reader, None) is None:
                    return
            except csv.Error as problem:
                if reader.line_num > before + 1:
                    raise BadInput(
                        f"{self.path} line {before + 1}: a quote is left open, up to line {reader.line_num}; close it, "
                        "or write it twice"
                    ) from problem
            before = reader.line_num

    def _torn(self, expected: int, header_lines: int) -> Iterator[str]:
        """What is said of the first lines with another number of cells."""
        said = 0
        for index, (line, cells) in enumerate(self.lines()):
            if index >= header_lines and len(cells) != expected:
                yield f"{self.path} line {line}: {len(cells)} columns where {expected} are expected"
                said += 1
                if said == LISTED:
                    return

    def _first_bad(self, expected: int, header_lines: int, said: str) -> BadInput:
        try:
            found = next(self._torn(expected, header_lines), None)
        except BadInput as bad:
            return bad
        return BadInput(found) if found else limits.unreadable(self.path, said or "not a table")
