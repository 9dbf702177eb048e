"""Parquet files with named columns."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from fedrec.data.readers import columns
from fedrec.data.readers.delimited import titles_of
from fedrec.data.readers.rows import Place, Rows
from fedrec.data.readers.table import moments, numbers
from fedrec.errors import BadInput

if TYPE_CHECKING:
    import pyarrow as pa

TEXT = ("user", "item", "client", "title")


def read(path: Path) -> Rows:
    """Rows of a Parquet file; columns are recognised by name as in a CSV with a header."""
    import pyarrow as pa
    from pyarrow import parquet

    try:
        file = parquet.ParquetFile(path)
        found = list(file.schema_arrow.names)
        names = columns.by_name(found, path)
        wanted = [name for name in names if not name.startswith("other:")]
        table = file.read([found[names.index(name)] for name in wanted]).rename_columns(wanted)
    except (OSError, pa.ArrowException) as problem:
        raise BadInput(f"cannot read {path}: {str(problem).splitlines()[0]}") from problem
    if table.num_rows == 0:
        raise BadInput(f"{path} has no rows; it needs at least one interaction")

    def place(row: int) -> str:
        return f"{path} row {row + 1}"

    ids = {name: _as_text(table[name], name, place) for name in wanted if name in TEXT}
    ratings: NDArray[np.float64] | None = None
    times: NDArray[np.int64] | NDArray[np.float64] | None = None
    if "rating" in wanted:
        ratings, bad = _as_numbers(table["rating"])
        if bad is not None:
            raise BadInput(f"{place(bad)}: rating {table['rating'][bad].as_py()!r} is not a number")
    if "time" in wanted:
        times, bad = _as_times(table["time"])
        if bad is not None:
            raise BadInput(f"{place(bad)}: time {table['time'][bad].as_py()!r} is neither a number nor a date")
    return Rows(
        users=ids["user"],
        items=ids["item"],
        ratings=ratings,
        times=times,
        clients=ids.get("client"),
        titles=titles_of(ids["item"], ids["title"]) if "title" in ids else None,
        place=place,
        given=True,
    )


def _as_text(column: pa.ChunkedArray, name: str, place: Place) -> pa.ChunkedArray:
    """Ids as text; whole numbers stored as floats (a habit of pandas) lose their '.0'."""
    import pyarrow as pa
    import pyarrow.compute as pc

    if column.null_count:
        row = int(np.argmax(pc.is_null(column).to_numpy()))
        raise BadInput(f"{place(row)}: no {name}")
    if pa.types.is_dictionary(column.type):
        column = pc.cast(column, column.type.value_type)
    if pa.types.is_floating(column.type):
        values = column.to_numpy()
        whole = values % 1 == 0
        if not whole.all():
            row = int(np.argmin(whole))
            raise BadInput(f"{place(row)}: {name} id {values[row]} is not a whole number")
        column = pc.cast(column, pa.int64())
    try:
        return pc.cast(column, pa.string())
    except (pa.ArrowInvalid, pa.ArrowNotImplementedError) as problem:
        raise BadInput(
            f"{place(0)}: {name} ids of type {column.type} cannot be used; text or integers can"
        ) from problem


def _as_numbers(column: pa.ChunkedArray) -> tuple[NDArray[np.float64], int | None]:
    import pyarrow as pa
    import pyarrow.compute as pc

    if pa.types.is_string(column.type) or pa.types.is_large_string(column.type):
        return numbers(pc.fill_null(column, ""))
    values = np.asarray(pc.cast(column, pa.float64()).to_numpy(), dtype=np.float64)
    bad = ~np.isfinite(values)
    return values, int(bad.argmax()) if bad.any() else None


def _as_times(column: pa.ChunkedArray) -> tuple[NDArray[np.int64] | NDArray[np.float64], int | None]:
    import pyarrow as pa
    import pyarrow.compute as pc

    if pa.types.is_string(column.type) or pa.types.is_large_string(column.type):
        return moments(pc.fill_null(column, ""))
    if column.null_count:
        return np.zeros(len(column)), int(np.argmax(pc.is_null(column).to_numpy()))
    if pa.types.is_temporal(column.type):
        when = pc.cast(column, pa.timestamp("us"))
        return np.asarray(pc.cast(when, pa.int64()).to_numpy(), dtype=np.float64) / 1e6, None
    if pa.types.is_integer(column.type):
        return np.asarray(column.to_numpy(), dtype=np.int64), None
    return _as_numbers(column)
