"""Parquet: a file, or a folder that holds a table in parts, as Spark, Dask and DuckDB write it."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Mapping, Sequence
from itertools import accumulate
from pathlib import Path
from typing import Any

import pyarrow as pa
from pyarrow import parquet

from fedrec.data import limits
from fedrec.data.compact import BadStruct
from fedrec.data.parquet_pages import OPTIONS, pages_of
from fedrec.data.readers.faults import SHARE
from fedrec.data.readers.rows import Place, Rows
from fedrec.data.readers.typed import FAILURES, is_bytes, is_text, rows_of_table, unusable, wanted
from fedrec.errors import BadInput

CELL = 8
"""Bytes that a cell takes at least, once it is read."""


def part_files(folder: Path) -> list[Path]:
    """The parts of a folder's table, by name; what other programs leave beside them (``_SUCCESS``) is none."""
    found = (path for path in folder.iterdir() if path.suffix.lower() in (".parquet", ".pq") and path.is_file())
    return sorted(path for path in found if not path.name.startswith(("_", ".")))


def read(path: Path, *, chosen: Mapping[str, str] | None = None, share: float = SHARE) -> Rows:
    """Rows of a file or of a folder's parts; columns are recognised by name as in a CSV with a header."""
    files = part_files(path) if path.is_dir() else [path]
    found, tables, most = _names(files[0]), list[pa.Table](), limits.largest()
    used = wanted(found, str(files[0]), chosen)
    for file in files:
        if sorted(own := _names(file)) != sorted(found):
            raise BadInput(
                f"{path} holds tables with different columns: {file.name} has {limits.names(own)}, {files[0].name} has "
                f"{limits.names(found)}; name one file"
            )
        tables.append(_columns(file, used))
        most -= tables[-1].nbytes
        if most < 0:
            raise limits.too_large(path, limits.largest())
    try:
        table = tables[0] if len(tables) == 1 else pa.concat_tables(tables, promote_options="permissive")
    except FAILURES as problem:
        raise limits.unreadable(path, f"its parts do not fit together: {problem}") from problem
    try:
        return rows_of_table(table, used, found, str(path), "Parquet", share, _place(files, tables))
    except BadInput as bad:
        raise bad if str(path) in str(bad) else BadInput(f"{path}: {bad}") from bad


def _place(files: Sequence[Path], tables: Sequence[pa.Table]) -> Place:
    """The file and row of a row of all parts together."""
    ends = list(accumulate(table.num_rows for table in tables))

    def place(row: int) -> str:
        part = min(bisect_right(ends, row), len(files) - 1)
        return f"{files[part]} row {row + 1 - (ends[part - 1] if part else 0)}"

    return place


def _names(path: Path) -> list[str]:
    """All columns of a file."""
    if not path.is_file():
        raise BadInput(f"cannot read {path}: not a plain file")
    try:
        with parquet.ParquetFile(path, **OPTIONS) as file:
            return [str(name) for name in file.schema_arrow.names]
    except FAILURES as problem:
        raise limits.unreadable(path, str(problem) or type(problem).__name__) from problem


def _columns(path: Path, used: Mapping[str, str]) -> pa.Table:
    """The used columns of a file, if they are no larger than a file of its size may become."""
    try:
        limit = limits.unpacked(path.stat().st_size)
        with parquet.ParquetFile(path, **OPTIONS) as file:
            schema, meta = file.schema_arrow, file.metadata
            kinds: dict[str, Any] = {name: schema.field(name).type for name in used.values()}
            for what, name in used.items():
                if pa.types.is_nested(kinds[name]):
                    raise unusable(f"{path} row 1", what, kinds[name])
            # what is said once in the file stays said once in memory
            texts = [name for name, kind in kinds.items() if is_text(kind) or is_bytes(kind)]
            rows, groups = meta.num_rows, [meta.row_group(index) for index in range(meta.num_row_groups)]
            cells = sum(max(CELL, _width(kind)) for kind in kinds.values())
            if max(rows, sum(group.num_rows for group in groups)) * cells > limit:
                raise limits.too_large(path, limit)
            pages = pages_of(path, file.schema, kinds)
            if pages.size > limit:
                raise limits.too_large(path, limit)
            if pages.differences:
                raise BadInput(
                    f"cannot read {path}: the column {limits.brief(pages.differences[0])} is stored as differences of "
                    "texts (DELTA_BYTE_ARRAY); write it plain or with a dictionary"
                )
        with parquet.ParquetFile(path, read_dictionary=texts, **OPTIONS) as file:
            return file.read(list(used.values()))
    except BadStruct as problem:
        raise limits.unreadable(path, str(problem)) from None
    except FAILURES as problem:
        raise limits.unreadable(path, str(problem) or type(problem).__name__) from problem


def _width(kind: Any) -> int:
    """Bytes of a value that is stored as so many bytes; 0 for all others."""
    return int(kind.byte_width) if pa.types.is_fixed_size_binary(kind) else 0
