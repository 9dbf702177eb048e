"""From columns of text to rows with a meaning: ids, ratings and times checked, faults counted."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from fedrec.data import limits
from fedrec.data.readers import headless as headless_file
from fedrec.data.readers.faults import Faults
from fedrec.data.readers.rows import Rows
from fedrec.data.readers.values import Numbers, Times, in_range, moments, numbers
from fedrec.data.understood import Understood

EARLIEST_TIME = 10**8
"""A third column of whole numbers that are all above this is a time (1973), not a rating."""


def rows_of(
    columns: Mapping[str, pa.ChunkedArray],
    faults: Faults,
    understood: Understood,
    *,
    given: bool = False,
    headless: bool = False,
    ratings: Numbers | None = None,
    times: Times | None = None,
    quoted: bool = False,
    notes: tuple[str, ...] = (),
) -> Rows:
    """Rows of text columns by meaning; ``ratings`` and ``times`` where those are numbers already.

    ``headless``: a file without a header, whose third column may be a time. ``quoted``: commas part its cells.
    """
    for what in ("user", "item", "client"):
        if what in columns:
            check_ids(columns[what], what, faults)
    said = list(notes)
    if ratings is None and "rating" in columns:
        ratings = numbers(columns["rating"], quoted)
        if headless and len(columns) == 3 and not ratings.bad.any() and _are_times(ratings.values):
            times, ratings = in_range(ratings.values), None
            columns = {("time" if what == "rating" else what): column for what, column in columns.items()}
            said.append(f"{understood.source}: the third column is read as a time")
    if times is None and "time" in columns:
        times = moments(columns["time"], quoted)
    if ratings is not None:
        faults.add(
            ratings.unclear,
            lambda row: (
                f"rating {_shown(columns, 'rating', row)} may have a decimal comma or a thousands separator: write "
                "1.05 or 1050"
            ),
            fatal=True,
        )
        faults.add(
            ratings.bad, lambda row: f"rating {_shown(columns, 'rating', row)} is not a number{_hint(row, headless)}"
        )
    if times is not None:
        fault = times.fault
        faults.add(times.bad, lambda row: f"time {_shown(columns, 'time', row)} {fault(row)}")
    if given and headless:
        bad = {"rating": None if ratings is None else ratings.bad, "time": None if times is None else times.bad}
        headless_file.refuse_header(columns, faults, {what: rows for what, rows in bad.items() if rows is not None})
        said.append(f"{understood.source}: {headless_file.READ}")
    if ratings is not None and ratings.thousands:
        said.append("ratings have commas between thousands")
    kept, left_out, listed = faults.kept()
    if left_out:
        said.append(f"{left_out} rows cannot be read and are left out, the first: {listed[0]}")
    rows = Rows(
        users=columns["user"],
        items=columns["item"],
        ratings=None if ratings is None else ratings.values,
        times=None if times is None else times.values,
        clients=columns.get("client"),
        place=faults.place,
        given=given,
        notes=tuple(said),
    ).take(kept)
    titles = None
    if "title" in columns:
        named = columns["title"] if kept is None else columns["title"].take(pa.array(kept))
        titles = titles_of(rows.items, named)
    return replace(
        rows,
        titles=titles,
        understood=replace(
            understood,
            rows=faults.rows + faults.n_torn,
            times=None if times is None else times.kind,
            decimal_comma=ratings is not None and ratings.comma,
            unreadable=left_out,
            unreadable_at=listed,
        ),
    )


def require_ids(users: pa.ChunkedArray, items: pa.ChunkedArray, faults: Faults) -> None:
    """Refuse a file in which an id is no id, or a row has another fault."""
    check_ids(users, "user", faults)
    check_ids(items, "item", faults)
    faults.kept()


def check_ids(column: pa.ChunkedArray, what: str, faults: Faults) -> None:
    """Count rows without an id among the faults; an id that is too long or has line ends is never passed over."""

    def rows(bad: pa.ChunkedArray) -> NDArray[np.bool_]:
        return np.asarray(pc.fill_null(bad, False).to_numpy(zero_copy_only=False), dtype=np.bool_)

    def refuse(bad: pa.ChunkedArray, why: str) -> None:
        faults.add(rows(bad), lambda row: why, fatal=True)

    words = pc.utf8_trim_whitespace(column)
    if (pc.max(pc.binary_length(words)).as_py() or 0) > limits.ID:
        long = pc.greater(pc.utf8_length(words), limits.ID)
        refuse(long, f"the {what} id is longer than {limits.ID} characters; is a quote left open before it?")
    for sign, name in (("\0", "a NUL character"), ("\n", "a line end"), ("\r", "a carriage return")):
        found = pc.match_substring(words, sign)
        if pc.any(found).as_py():
            refuse(found, f"{name} in the {what} id; is a quote left open?")
    blank = pc.equal(pc.binary_length(words), 0)
    faults.add(rows(pc.or_kleene(blank, pc.is_null(words))), lambda row: f"no {what} id")


def titles_of(items: pa.ChunkedArray, titles: pa.ChunkedArray) -> dict[str, str] | None:
    """Item id to title, out of two columns; the last title of an item counts, and an empty one is none."""
    given = pa.table({"item": items, "title": titles})
    given = given.filter(pc.not_equal(pc.utf8_trim_whitespace(pc.fill_null(titles, "")), ""))
    pairs = given.group_by(["item"], use_threads=False).aggregate([("title", "last")])
    found = zip(pairs["item"].to_pylist(), pairs["title_last"].to_pylist(), strict=True)
    return {item.strip(): title for item, title in found if item is not None} or None


def _shown(columns: Mapping[str, pa.ChunkedArray], what: str, row: int) -> str:
    value = columns[what][row].as_py() if what in columns else None
    return "None" if value is None else limits.brief(value)


def _hint(row: int, headless: bool) -> str:
    return "; a header names user, item, rating, timestamp" if headless and row == 0 else ""


def _are_times(values: NDArray[np.float64]) -> bool:
    return bool(len(values)) and bool((values > EARLIEST_TIME).all()) and bool((values % 1 == 0).all())
