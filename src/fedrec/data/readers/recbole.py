"""RecBole's atomic files: tab separated, with a typed header (``user_id:token``)."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from fedrec.data import limits
from fedrec.data.readers import columns, delimited
from fedrec.data.readers.rows import Rows
from fedrec.data.readers.table import Table
from fedrec.errors import BadInput

TITLE_COLUMNS = ("movie_title", "title", "item_name", "name", "artist_name", "book_title", "entity_name")


def read(path: Path, *, chosen: Mapping[str, str] | None = None) -> Rows:
    """Interactions of a ``.inter`` file, with titles from the ``.item`` file beside it."""
    table = Table.open(path, "\t", quoted=False)
    header = table.first()
    if not all(":" in cell for cell in header):
        raise BadInput(
            f"{path} line 1: a RecBole header names a type, as in 'user_id:token'; found {limits.brief(header[0])}"
        )
    rows = delimited.from_table(table, columns.by_name(header, path, chosen), 1, found=header)
    return rows.titled(path, [path.with_suffix(".item").name], titles)


def titles(path: Path) -> dict[str, str] | None:
    """Item id to title of a ``.item`` file, or None where it has no title column."""
    table = Table.open(path, "\t", quoted=False)
    plain = [cell.split(":")[0].strip().lower() for cell in table.first()]
    name = next((column for column in TITLE_COLUMNS if column in plain), None)
    where = next((i for i, cell in enumerate(plain) if columns.meaning(cell) == "item"), None)
    if name is None or where is None:
        return None
    at, need = plain.index(name), len(plain)
    found: dict[str, str] = {}
    for line, cells in table.lines():
        if len(cells) != need:
            raise BadInput(f"{path} line {line}: {len(cells)} columns where {need} are expected")
        found[cells[where]] = cells[at]
    return found
