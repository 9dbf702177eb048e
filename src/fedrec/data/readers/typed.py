"""Tables whose columns have types: what is in Parquet files and DataFrames."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from fedrec.data import limits
from fedrec.data.readers import columns, meanings
from fedrec.data.readers.faults import SHARE, Faults
from fedrec.data.readers.rows import Place, Rows
from fedrec.data.readers.values import WHOLE, Numbers, Times, in_range, moments, numbers
from fedrec.data.understood import Understood
from fedrec.errors import BadInput

FRAME = "DataFrame"
TEXT = ("user", "item", "client", "title")
PER_SECOND = {"s": 1, "ms": 10**3, "us": 10**6, "ns": 10**9}
FAILURES = (
    OSError, pa.ArrowException, ValueError, TypeError, KeyError, IndexError, OverflowError, MemoryError, AttributeError,
)  # fmt: skip
"""What a damaged or odd table makes pyarrow raise, depending on where the oddity is."""
EXACT = (
    (pa.types.is_float16, 2.0**11 - 1), (pa.types.is_float32, 2.0**24 - 1), (pa.types.is_floating, WHOLE),
)  # fmt: skip
"""Up to which every whole number of a kind is itself: above it, two ids become one."""


def wanted(found: list[str], source: str, chosen: Mapping[str, str] | None) -> dict[str, str]:
    """Meaning to column name, for the columns that are used."""
    names = columns.by_name(found, source, chosen)
    used = {what: name for what, name in zip(names, found, strict=True) if what in columns.KNOWN}
    for what, name in used.items():
        if found.count(name) > 1:
            raise BadInput(f"{source} has several columns called {limits.brief(name)} ({what}); keep one")
    return used


def is_frame(value: object) -> bool:
    """Whether this is a table in memory."""
    return hasattr(value, "__arrow_c_stream__") or hasattr(value, "to_arrow") or type(value).__name__ == "DataFrame"


def read_frame(frame: Any, *, chosen: Mapping[str, str] | None = None, share: float = SHARE) -> Rows:
    """Rows of a table in memory; columns are recognised by name as in a CSV with a header."""
    try:
        table = _as_arrow(frame)
        found = [str(name) for name in table.column_names]
        table = table.rename_columns(found)
    except FAILURES as problem:
        why = "; ".join(map(str, problem.args))  # pyarrow says the column in a second one
        raise limits.unreadable(f"the {FRAME}", why or type(problem).__name__) from problem
    return rows_of_table(table, wanted(found, FRAME, chosen), found, FRAME, FRAME, share)


def _as_arrow(frame: Any) -> pa.Table:
    if isinstance(frame, pa.Table):
        return frame
    if isinstance(frame, pa.RecordBatch):
        return pa.Table.from_batches([frame])
    if type(frame).__module__.partition(".")[0] == "pandas":
        return pa.Table.from_pandas(frame, preserve_index=False)
    if hasattr(frame, "to_arrow"):
        return frame.to_arrow()
    return pa.table(frame)


def rows_of_table(
    table: pa.Table,
    used: Mapping[str, str],
    found: list[str],
    source: str,
    form: str,
    share: float,
    place: Place | None = None,
) -> Rows:
    """Rows of a table that has at least the used columns; ``found`` are all there were."""
    if table.num_rows == 0:
        raise BadInput(f"{source} has no rows; it needs at least one interaction")
    faults = Faults(table.num_rows, place or (lambda row: f"{source} row {row + 1}"), share)
    plain: dict[str, pa.ChunkedArray] = {}
    ratings: Numbers | None = None
    times: Times | None = None
    for what, name in used.items():
        column = table[name]
        try:
            column.validate(full=True)
            plain[what] = _as_text(_plain(column), what, faults) if what in TEXT else _plain(column)
            if what == "rating":
                ratings = _as_numbers(plain[what])
            elif what == "time":
                times = _as_times(plain[what])
        except FAILURES as problem:
            raise unusable(faults.place(0), what, column.type) from problem
    understood = Understood(
        source=source,
        form=form,
        rows=table.num_rows,
        columns=tuple((what, name.strip()) for what, name in used.items()),
        ignored=tuple(name.strip() for name in found if name not in used.values()),
    )
    return meanings.rows_of(plain, faults, understood, given=True, ratings=ratings, times=times)


def unusable(place: str, what: str, kind: Any) -> BadInput:
    """The refusal of a column whose values mean nothing here."""
    usable = {"rating": "numbers", "time": "numbers or dates"}.get(what, "text or integers")
    plural = " ids" if what in ("user", "item", "client") else "s"
    return BadInput(f"{place}: {what}{plural} of type {limits.brief(kind)[1:-1]} cannot be used; {usable} can")


def _plain(column: pa.ChunkedArray) -> pa.ChunkedArray:
    """The column without an encoding of its own."""
    kind: Any = column.type
    if pa.types.is_dictionary(kind):
        widest = 0
        for chunk in column.chunks:
            if is_text(kind.value_type) or is_bytes(kind.value_type):
                widest = max(widest, pc.max(pc.binary_length(chunk.dictionary)).as_py() or 0)
        if widest > 4 * limits.ID:  # a long text, stored once, would be written out for every row
            raise BadInput(f"a cell is longer than {4 * limits.ID} bytes; ids have at most {limits.ID} characters")
        return pc.cast(column, kind.value_type)
    return column


def _as_text(column: pa.ChunkedArray, what: str, faults: Faults) -> pa.ChunkedArray:
    """Ids as text; whole numbers stored as floats (a habit of pandas) lose their '.0'."""
    if pa.types.is_null(column.type):
        return pa.chunked_array([pa.nulls(len(column), pa.string())])
    if pa.types.is_floating(column.type):
        values = np.asarray(pc.cast(column, pa.float64()).to_numpy(), dtype=np.float64)
        missing = ~np.isfinite(values)
        exact = next(most for kind, most in EXACT if kind(column.type))
        odd = ~missing & ((values % 1 != 0) | (np.abs(values) > exact))
        kind = column.type
        faults.add(
            odd,
            lambda row: (
                f"{what} id {values[row]:.17g} is "
                + (f"larger than what {kind} holds exactly" if values[row] % 1 == 0 else "not a whole number")
            ),
        )
        whole = np.where(missing | odd, 0, values).astype(np.int64)
        column = pa.chunked_array([pa.array(whole, mask=missing)])
    if what == "title":
        column = pc.fill_null(column, "") if pa.types.is_string(column.type) else column
    return pc.cast(column, pa.string())


def is_text(kind: Any) -> bool:
    return bool(pa.types.is_string(kind) or pa.types.is_large_string(kind) or pa.types.is_string_view(kind))


def is_bytes(kind: Any) -> bool:
    """Bytes of any length: what many programs call text in a Parquet file."""
    return bool(pa.types.is_binary(kind) or pa.types.is_large_binary(kind) or pa.types.is_binary_view(kind))


def _as_numbers(column: pa.ChunkedArray) -> Numbers:
    if is_text(column.type):
        return numbers(pc.cast(column, pa.string()))
    values = np.asarray(pc.cast(column, pa.float64(), safe=False).to_numpy(), dtype=np.float64)
    return Numbers(values, ~np.isfinite(values), np.zeros(len(values), np.bool_))


def _as_times(column: pa.ChunkedArray) -> Times:
    if is_text(column.type):
        return moments(pc.cast(column, pa.string()))
    missing = np.asarray(pc.is_null(column).to_numpy(), dtype=np.bool_)
    if pa.types.is_timestamp(column.type) or pa.types.is_date(column.type):
        if pa.types.is_timestamp(column.type):
            scale = float(PER_SECOND[column.type.unit])
        else:
            scale = 1e3 if pa.types.is_date64(column.type) else 1 / 86_400
        whole = pc.fill_null(pc.cast(column, pa.int64() if not pa.types.is_date32(column.type) else pa.int32()), 0)
        return Times(np.asarray(whole.to_numpy(), dtype=np.float64) / scale, missing, "dates")
    if pa.types.is_integer(column.type):
        whole = pc.cast(pc.fill_null(column, pa.scalar(0, column.type)), pa.int64())
        return in_range(np.asarray(whole.to_numpy(), dtype=np.int64), missing)
    found = _as_numbers(column)
    return in_range(found.values, found.bad)
