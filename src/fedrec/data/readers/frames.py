"""Tables in memory: pandas and polars DataFrames, pyarrow tables, whatever hands out Arrow columns."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from fedrec.data import limits
from fedrec.data.readers import typed
from fedrec.data.readers.faults import SHARE
from fedrec.data.readers.rows import Rows

if TYPE_CHECKING:
    import pyarrow as pa

SOURCE = "DataFrame"


def is_frame(value: object) -> bool:
    """Whether this is a table in memory."""
    return hasattr(value, "__arrow_c_stream__") or hasattr(value, "to_arrow") or type(value).__name__ == "DataFrame"


def read(frame: Any, *, chosen: Mapping[str, str] | None = None, share: float = SHARE) -> Rows:
    """Rows of a table in memory; columns are recognised by name as in a CSV with a header."""
    try:
        table = _as_arrow(frame)
        found = [str(name) for name in table.column_names]
        table = table.rename_columns(found)
    except typed.failures() as problem:
        raise limits.unreadable(f"the {SOURCE}", str(problem) or type(problem).__name__) from problem
    return typed.rows_of_table(table, typed.wanted(found, SOURCE, chosen), found, SOURCE, SOURCE, share)


def _as_arrow(frame: Any) -> pa.Table:
    import pyarrow as pa

    if isinstance(frame, pa.Table):
        return frame
    if isinstance(frame, pa.RecordBatch):
        return pa.Table.from_batches([frame])
    if type(frame).__module__.partition(".")[0] == "pandas":
        return pa.Table.from_pandas(frame, preserve_index=False)
    if hasattr(frame, "to_arrow"):
        return frame.to_arrow()
    return pa.table(frame)
