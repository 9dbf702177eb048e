"""CSV, TSV and blank-separated files, with or without a header."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from functools import partial
from itertools import islice
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from fedrec.data.readers import columns, content, doubts, meanings
from fedrec.data.readers.faults import SHARE, Faults
from fedrec.data.readers.rows import Place, Rows
from fedrec.data.readers.table import Table
from fedrec.data.readers.values import COMMA_NUMBER
from fedrec.data.understood import Understood
from fedrec.errors import BadInput

HEAD = 1 << 16
"""Bytes that are looked at to tell what a file is."""
LINES = 50
"""Lines that are looked at."""
QUOTED = re.compile(r'(?<![^,;\t| :])"(?:[^"]|"")*"(?=[,;\t| :]|$)')
"""A cell in quotes, whatever stands between cells."""
DELIMITERS = ("\t", ";", ",", "|", " ")


def sniff(first_line: str, more: Sequence[str] = ()) -> str:
    """The delimiter of a file, from its first line; ``more`` lines tell '::' in ids from '::' between cells.

    >>> sniff("1,2,3"), sniff("1 2 3"), sniff("1::2::3"), sniff("1;2,5;3"), sniff("urn::1,2", ["urn::1,5"])
    (',', ' ', '::', ';', ',')
    >>> sniff("1|2|3,5"), sniff("1 2 3,5"), sniff("1,2,3|4"), sniff('"Name, first";"Item, kind"')
    ('|', ' ', ',', ';')
    """
    line, *more = (QUOTED.sub("", line) for line in (first_line.strip(), *more))
    if "::" in line and not (more and _in_ids([line, *more])):
        return "::"
    if "," in line and ";" in line:  # the other one stands inside cells
        usual, less = sorted(",;", key=line.count, reverse=True)
        marks = ["\t", usual, less] if "\t" in line else [usual, less]
        return next((mark for mark in marks if len({one.count(mark) for one in (line, *more)}) == 1), usual)
    found = next((mark for mark in DELIMITERS if mark in line), ",")
    if found == "," and (other := next((mark for mark in "| " if _commas_in_cells([line, *more], mark)), None)):
        return other
    return found


def _commas_in_cells(lines: Sequence[str], mark: str) -> bool:
    """Whether this mark stands between cells, equally many in each line, and every comma inside a number."""
    rows = [[cell for cell in line.split(mark) if cell or mark != " "] for line in lines]
    cells = [cell for row in rows for cell in row if "," in cell]
    regular = len({len(row) for row in rows}) == 1 and len(rows[0]) > 2
    return regular and all(re.match(COMMA_NUMBER, cell.strip()) for cell in cells)


def _in_ids(lines: Sequence[str]) -> bool:
    """Whether something else than the '::' of a file stands between its cells: as often in each of these lines."""
    mark = next((mark for mark in "\t;,|" if mark in lines[0]), None)
    if mark is None or len({line.count(mark) for line in lines}) > 1:
        return False
    cells = lines[0].split("::")  # with three or more, one may be a rating with a decimal comma
    return not (mark == "," and len(cells) > 2 and all(re.match(COMMA_NUMBER, cell) for cell in cells if "," in cell))


def head_lines(path: Path) -> list[str]:
    """The first lines that are not empty; a last one that may be cut off is left out."""
    found = content.head(path, HEAD)
    encoding = next((name for mark, name in content.MARKS if found.startswith(mark)), "utf-8")
    text = found.decode(encoding, "replace").lstrip("\ufeff")
    text = content.EXCEL.sub(b"", text.encode(), count=1).decode()
    lines = text.replace("\r\n", "\n").replace("\r", "\n").split("\n")
    return [line for line in lines[:-1] or lines if line.strip()]


def read(
    path: Path,
    *,
    given: bool = True,
    cut_end: bool = False,
    chosen: Mapping[str, str] | None = None,
    share: float | None = None,
    alone: bool = True,
) -> Rows:
    """Rows of a delimited file.

    ``given``: a person's own file (ids of mixed kind are mistakes). ``cut_end``: leave out a last line cut off.
    ``chosen``: meaning to column name. ``share``: of rows that may be unreadable; of a person's own file, one in
    a hundred. ``alone``: it is no part of a split, in which each user may be there once.
    """
    lines = head_lines(path)[:LINES] or [""]
    table = Table.open(path, sniff(lines[0], lines[1:]))
    if table.quoted and 2 * sum(table.spaced(line) for line in lines) > len(lines):
        table = table.without_blanks_before_quotes()
    cells = table.first()
    if not any(cell.strip() for cell in cells):
        table = table.without_blank_rows()
        cells = table.first()
    _refuse_quotes(path, table, "'" if table.quoted else '"')
    header = columns.is_header(cells, chosen)
    if chosen and not header:
        raise BadInput(f"{path} has no header, so --columns has nothing to choose from; put names into its first line")
    names = columns.by_name(cells, path, chosen) if header else columns.by_position(len(cells), path)
    share = share if share is not None else SHARE if given else 0.0
    rows = from_table(table, names, header, given=given, cut_end=cut_end, share=share, found=cells)
    if given and alone:
        doubts.refuse(path, rows, header=header, blanks=table.delimiter in "\t ")
    return rows


def _refuse_quotes(path: Path, table: Table, quote: str) -> None:
    """Where blanks or '::' stand between cells, quotes would become part of the ids, as would single ones anywhere."""
    for line, cells in islice(table.lines(), 2):
        ids = [cell.strip() for cell in cells[:2]]
        if len(ids) == 2 and all(len(cell) > 1 and cell[0] == cell[-1] == quote for cell in ids):
            why, mend = (
                ("single quotes", "double ones")
                if quote == "'"
                else ("quotes, with blanks or '::' between cells", "commas or tabs")
            )
            raise BadInput(f"{path} line {line}: ids in {why}; write it with {mend}, or without quotes")


def _equal(data: pa.Table, names: list[str], header: list[str], place: Place) -> NDArray[np.bool_]:
    """Rows whose user and item are those of the header: files that were put behind one another."""
    user, item = (header[names.index(what)] for what in ("user", "item"))

    def rows(what: str, name: str) -> NDArray[np.bool_]:
        return np.asarray(pc.equal(data[what], name).to_numpy(), dtype=np.bool_)

    users, items = rows("user", user), rows("item", item)
    for row in np.flatnonzero((users != items) | rows("item", user)).tolist()[:LINES]:
        if {data[what][row].as_py() for what in ("user", "item")} <= set(header):
            raise BadInput(f"{place(row)}: another header, with its columns in another order; give all parts one order")
    return users & items


def _is_line(cell: str) -> bool:
    """Whether a cell is part of a line of dashes below a header, as in Markdown and from databases."""
    return bool(re.match(r"^\s*:?-+:?\s*$", cell))


def from_table(
    table: Table,
    names: list[str],
    header_lines: int,
    *,
    given: bool = False,
    cut_end: bool = False,
    share: float = 0.0,
    found: list[str] | None = None,
) -> Rows:
    """Rows of an opened file whose columns have these names (in the file: ``found``)."""
    attempt = partial(
        _attempt, names=names, header_lines=header_lines, given=given, cut_end=cut_end, share=share, found=found
    )
    try:
        rows = attempt(table)
    except BadInput:
        less = table.without_blank_rows()  # looked for only where something cannot be read: it takes time
        if less is table:
            raise
        return attempt(less)
    if rows.understood is None or not rows.understood.unreadable:
        return rows
    less = table.without_blank_rows()
    return rows if less is table else attempt(less)


def _attempt(
    table: Table,
    names: list[str],
    header_lines: int,
    *,
    given: bool,
    cut_end: bool,
    share: float,
    found: list[str] | None,
) -> Rows:
    notes: list[str] = []
    if cut_end:
        whole = table.without_torn_end(len(names))
        if whole is not table:
            notes.append(f"{table.path.name}: left out the last line, which is incomplete")
        table = whole
    wanted = [name for name in names if name in columns.KNOWN]
    parsed = table.parse(names, header_lines, wanted, share)
    place = partial(table.place, header_lines=header_lines, expected=len(names) if parsed.n_torn else None)
    if table.n_blank:
        notes.append(f"{table.n_blank} rows have nothing in them and are left out")
    if table.encoding == "cp1252":
        notes.append(f"{table.path.name} is not UTF-8: read as cp1252")
    said = [name.strip() for name in (found if found is not None and header_lines else names)]
    mark = {"\t": "tabs", " ": "blanks", "\x1f": "::"}.get(table.delimiter, table.delimiter)
    understood = Understood(
        source=table.path.name,
        form=f"text with {mark} between cells",
        rows=parsed.data.num_rows,
        columns=tuple((what, name) for what, name in zip(names, said, strict=True) if what in columns.KNOWN),
        ignored=tuple(name for what, name in zip(names, said, strict=True) if what not in columns.KNOWN),
        encoding=table.encoding,
    )
    faults = Faults(parsed.data.num_rows, place, share, parsed.torn, parsed.n_torn)
    if header_lines and found is not None:
        again = _equal(parsed.data, names, found, place)
        if again.any():
            notes.append(f"{again.sum()} rows repeat the header and are left out")
        if all(_is_line(parsed.data[what][0].as_py()) for what in ("user", "item")):
            notes.append("the line below the header is left out")
            again[0] = True
        if again.all():
            raise table.no_rows()
        if again.any():
            faults.headers = again
    return meanings.rows_of(
        {name: parsed.data[name] for name in wanted},
        faults,
        understood,
        given=given,
        headless=not header_lines,
        quoted=table.delimiter == ",",
        notes=tuple(notes),
    )
