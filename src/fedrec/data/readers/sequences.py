"""One line per user: the user's id, then the items in order of time."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from fedrec.data import limits
from fedrec.data.ragged import offsets
from fedrec.data.readers import content
from fedrec.data.readers.faults import Faults
from fedrec.data.readers.meanings import require_ids
from fedrec.data.readers.rows import Rows
from fedrec.data.understood import Understood
from fedrec.errors import BadInput

RATED = r"^[0-9]+:[0-9]+(\.[0-9]+)?$"
"""An item with its rating."""
LOOK = 1000
"""Items that are looked at."""


def read(path: Path) -> Rows:
    """Interactions of a sequence file; the place in the line (0, 1, ...) stands for the time."""
    data, encoding = content.text(path)
    content.refuse_long_lines(data, path, limits.LONG_LINE)
    lines = pa.array(data.decode("utf-8").replace("\r\n", "\n").replace("\r", "\n").split("\n"), pa.string())
    words = pc.utf8_split_whitespace(pc.utf8_trim_whitespace(lines))
    counts = np.asarray(pc.list_value_length(words).to_numpy(zero_copy_only=False), dtype=np.int64)
    cells = pc.list_flatten(words)
    start = offsets(counts)[:-1]
    first = pc.take(cells, pa.array(start)).to_pylist()  # an empty line has one empty word
    filled = np.array([bool(word) for word in first], dtype=np.bool_)
    alone = np.flatnonzero(filled & (counts < 2))
    if len(alone):
        raise BadInput(f"{path} line {int(alone[0]) + 1}: a user without items; expected 'user item item ...'")
    seen: dict[str, int] = {}
    for line in np.flatnonzero(filled).tolist():
        if first[line] in seen:
            raise BadInput(
                f"{path} line {line + 1}: this user has a line already (line {seen[first[line]]}); give each user one"
            )
        seen[first[line]] = line + 1
    items_of = np.where(filled, counts - 1, 0)  # [lines]
    each = np.repeat(np.arange(len(counts)), items_of)
    place_in_line = np.arange(len(each), dtype=np.int64) - np.repeat(offsets(items_of)[:-1], items_of)
    users = pa.chunked_array([pc.take(cells, pa.array(start[each]))])
    items = pa.chunked_array([pc.take(cells, pa.array(start[each] + 1 + place_in_line))])

    if pc.all(pc.match_substring_regex(items.slice(0, LOOK), RATED)).as_py():
        raise BadInput(f"{path}: items are written with a number (10:5); write a line for each (user item rating)")

    def place(row: int) -> str:
        return f"{path} line {int(each[row]) + 1}"

    require_ids(users, items, Faults(len(each), place))
    return Rows(
        users=users,
        items=items,
        times=place_in_line,
        place=place,
        notes=("no times; the order of items in a line is taken as their order in time",),
        understood=Understood(
            path.name, "one line per user", len(each), times="the order in a line", encoding=encoding
        ),
    )


def looks_like(lines: list[str]) -> bool:
    """Whether these first lines are sequences: blanks between, each user once, lengths that vary."""
    split = [words for words in (line.split() for line in lines) if words]
    if not split or any("," in line or ";" in line or "::" in line for line in lines):
        return False
    lengths = [len(words) for words in split]
    usual = max(set(lengths), key=lengths.count)
    # a table with one torn row is a bad table, not a sequence file
    table = 2 <= usual <= 5 and lengths.count(usual) >= 0.8 * len(lengths) and len(lengths) > 1
    distinct = len({words[0] for words in split}) == len(split)
    return distinct and not table and (len(set(lengths)) > 1 or usual > 5)
