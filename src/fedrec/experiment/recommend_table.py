"""Recommendations as tables: rows of user, rank, item, title and score, in memory or streamed into a file."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from fedrec.errors import BadInput
from fedrec.experiment.recommend import Recommender, Top
from fedrec.runs.atomic import replace_file, why_no_file

if TYPE_CHECKING:
    import pandas as pd
    import pyarrow as pa

FORMATS = (".parquet", ".csv", ".jsonl")


def check_out(path: Path) -> None:
    """A file that cannot be written must be known before the work, not after."""
    if path.suffix.lower() not in FORMATS:
        raise BadInput(f"cannot write {path}: its name must end in {', '.join(FORMATS[:-1])} or {FORMATS[-1]}")
    why = why_no_file(path)
    if why is not None:
        raise BadInput(f"cannot write {path}: {why and why + '; '}give a file in a folder that exists")


def write(
    recommender: Recommender, tops: Iterable[Top], path: Path, on_block: Callable[[int], None] | None = None
) -> int:
    """Write lists as they come, as the file's name says; all of it or nothing. Gives the number of users."""
    check_out(path)
    done = 0

    def fill(temporary: Path) -> None:
        nonlocal done
        add = None
        with ExitStack() as stack:
            for table, users in _tables(recommender, tops):
                add = add or _writer(path.suffix.lower(), temporary, table.schema, stack)
                add(table)
                done += users
                if on_block is not None:
                    on_block(done)

    replace_file(path, fill)
    return done


def frame(recommender: Recommender, tops: Iterable[Top]) -> pd.DataFrame:
    """All lists as one DataFrame."""
    import pyarrow as pa

    tables = [table for table, _ in _tables(recommender, tops)]
    if not tables:  # nobody was asked for
        none = Top(np.empty(0, np.int64), np.empty((0, 0), np.int32), np.empty((0, 0), np.float32))
        tables = [table for table, _ in _tables(recommender, [none])]
    found: pd.DataFrame = pa.concat_tables(tables).to_pandas()
    return found


def _tables(recommender: Recommender, tops: Iterable[Top]) -> Iterator[tuple[pa.Table, int]]:
    import pyarrow as pa

    users, items = pa.array(recommender.user_ids.tolist()), pa.array(recommender.item_ids.tolist())
    titles = None if recommender.titles is None else pa.array([str(title) for title in recommender.titles])
    for top in tops:
        row, place = np.nonzero(top.items >= 0)
        chosen = pa.array(top.items[row, place])
        columns: dict[str, Any] = {
            "user": users.take(pa.array(top.users[row])),
            "rank": pa.array((place + 1).astype(np.int32)),
            "item": items.take(chosen),
        }
        if titles is not None:
            columns["title"] = titles.take(chosen)
        yield pa.table({**columns, "score": pa.array(top.scores[row, place])}), len(top.users)


def _writer(suffix: str, path: Path, schema: pa.Schema, stack: ExitStack) -> Callable[[Any], Any]:
    """A function that adds a table to the file, until the stack is left."""
    if suffix == ".jsonl":
        file = stack.enter_context(open(path, "w", encoding="utf-8"))  # noqa: SIM115

        def add_lines(table: pa.Table) -> None:
            if table.num_rows:  # pandas makes an empty line of none
                table.to_pandas().to_json(file, orient="records", lines=True, force_ascii=False, double_precision=15)

        return add_lines
    import pyarrow.csv
    import pyarrow.parquet

    kind: Any = pyarrow.csv.CSVWriter if suffix == ".csv" else pyarrow.parquet.ParquetWriter
    opened = stack.enter_context(open(path, "wb"))  # noqa: SIM115 (pyarrow itself takes no name that is not UTF-8)
    add: Callable[[Any], Any] = stack.enter_context(kind(opened, schema)).write_table
    return add
