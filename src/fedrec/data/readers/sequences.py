"""One line per user: the user's id, then the items in order of time."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from fedrec.data.ragged import offsets
from fedrec.data.readers.rows import Rows
from fedrec.data.readers.table import contents
from fedrec.errors import BadInput


def read(path: Path) -> Rows:
    """Interactions of a sequence file; the place in the line (0, 1, ...) stands for the time."""
    import pyarrow as pa

    try:
        text = contents(path).decode("utf-8")
    except UnicodeDecodeError as problem:
        raise BadInput(f"{path} is not utf-8 text (byte {problem.start})") from problem
    users: list[str] = []
    counts: list[int] = []
    items: list[str] = []
    line_of_row: list[int] = []
    seen: dict[str, int] = {}
    for line, words in enumerate((line.split() for line in text.split("\n")), start=1):
        if not words:
            continue
        if len(words) < 2:
            raise BadInput(f"{path} line {line}: user {words[0]!r} has no items; expected 'user item item ...'")
        if words[0] in seen:
            raise BadInput(
                f"{path} line {line}: user {words[0]!r} has a line already (line {seen[words[0]]}); "
                "give each user one line"
            )
        seen[words[0]] = line
        users.append(words[0])
        counts.append(len(words) - 1)
        items.extend(words[1:])
        line_of_row.append(line)
    each = np.repeat(np.arange(len(users)), counts)
    return Rows(
        users=pa.chunked_array([pa.array(users).take(pa.array(each))]),
        items=pa.chunked_array([pa.array(items)]),
        times=np.arange(len(items), dtype=np.int64) - np.repeat(offsets(np.array(counts))[:-1], counts),
        place=lambda row: f"{path} line {line_of_row[each[row]]}",
        notes=("no times; the order of items in a line stands for time",),
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
