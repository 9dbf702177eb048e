"""``users.parquet``: test metrics of every user. It may come from somebody else, so its sizes are looked at first."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from fedrec.core.state import BadState
from fedrec.data import limits
from fedrec.data.parquet_pages import OPTIONS, pages_of

CELL = 8
"""Bytes of a metric, once it is read."""


def read_users(path: Path) -> Any:
    """The table: a column of users, and columns of numbers; :class:`BadState` where it is another, or far too large."""
    try:
        table = _read(path) if path.suffix == ".parquet" else _read_csv(path)
    except BadState:
        raise
    except Exception as problem:  # pyarrow and pandas have many
        raise BadState(f"it is not a table ({type(problem).__name__})") from None
    if "user" not in table or any(table[name].dtype.kind != "f" for name in table if name != "user"):
        raise BadState("it is not a table of users and their metrics")
    return table


def _read(path: Path) -> Any:
    from pyarrow import parquet, types

    limit = limits.unpacked(path.stat().st_size)
    with open(path, "rb") as opened, parquet.ParquetFile(opened, read_dictionary=["user"], **OPTIONS) as file:
        kinds = {field.name: field.type for field in file.schema_arrow}
        plain = all(types.is_floating(kind) for name, kind in kinds.items() if name != "user")
        if len(kinds) < file.metadata.num_columns or not plain or not types.is_dictionary(kinds.get("user")):
            raise BadState("it is not a table of users and their metrics")
        pages = pages_of(path, file.schema)
        groups = [file.metadata.row_group(index) for index in range(file.metadata.num_row_groups)]
        rows = max(file.metadata.num_rows, sum(group.num_rows for group in groups))
        if max(rows * len(kinds) * CELL, pages.size) > limit or pages.differences:
            raise BadState(f"it holds more than {limits.size(limit)}")
        table = file.read()
    widest = max((len(text) for chunk in table["user"].chunks for text in chunk.dictionary.to_pylist()), default=0)
    if widest > limits.ID:
        raise BadState(f"a user's id is longer than {limits.ID} characters")
    frame = table.to_pandas()
    return frame.assign(user=frame["user"].astype(str))


def _read_csv(path: Path) -> Any:
    import pandas as pd

    return pd.read_csv(path, dtype={"user": str}).astype({"user": str})
