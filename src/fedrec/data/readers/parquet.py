"""Parquet files with named columns."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import pyarrow as pa
from pyarrow import parquet

from fedrec.data import limits
from fedrec.data.readers import typed
from fedrec.data.readers.faults import SHARE
from fedrec.data.readers.rows import Rows
from fedrec.errors import BadInput

CELL = 8
"""Bytes that a cell takes at least, once it is read."""
NAMES = 1 << 24
"""Bytes of names, and number of things, in a file's own description."""


def read(path: Path, *, chosen: Mapping[str, str] | None = None, share: float = SHARE) -> Rows:
    """Rows of a Parquet file; columns are recognised by name as in a CSV with a header."""
    if not path.is_file():
        raise BadInput(f"cannot read {path}: not a plain file")
    try:
        packed = path.stat().st_size
        limit = limits.unpacked(packed)
        options = {
            "thrift_string_size_limit": NAMES,
            "thrift_container_size_limit": NAMES,
            "page_checksum_verification": True,
        }
        with parquet.ParquetFile(path, **options) as file:
            schema, meta = file.schema_arrow, file.metadata
            found = [str(name) for name in schema.names]
            used = typed.wanted(found, str(path), chosen)
            # what is said once in the file stays said once in memory
            texts = [name for name in used.values() if pa.types.is_string(schema.field(name).type)]
            rows, groups = meta.num_rows, [meta.row_group(index) for index in range(meta.num_row_groups)]
            if max(rows, sum(group.num_rows for group in groups)) * len(used) * CELL > limit:
                raise limits.too_large(path, limit)
            if sum(group.total_byte_size for group in groups) > limits.largest():
                raise limits.too_large(path, limits.largest())
        with parquet.ParquetFile(path, read_dictionary=texts, **options) as file:
            table = file.read(list(used.values()))
    except typed.FAILURES as problem:
        raise limits.unreadable(path, str(problem) or type(problem).__name__) from problem
    try:
        return typed.rows_of_table(table, used, found, str(path), "Parquet", share)
    except BadInput as bad:
        raise bad if str(path) in str(bad) else BadInput(f"{path}: {bad}") from bad
