"""Tenrec's QB-article: exposures of articles with several kinds of feedback; a click is an interaction."""

from __future__ import annotations

from pathlib import Path

from fedrec.data import limits
from fedrec.data.readers import columns, delimited
from fedrec.data.readers.rows import Rows
from fedrec.data.readers.table import Table
from fedrec.errors import BadInput


def read(path: Path) -> Rows:
    """``QB-article.csv`` (``user_id,item_id,click,...``): rows with click 1; the others are exposures."""
    table = Table.open(path, ",")
    header = [cell.strip() for cell in table.first()]
    if "click" not in header:
        raise BadInput(f"{path} has no 'click' column; columns found: {limits.names(header)}")
    names = columns.by_name(header, path)
    names = [name if name != "rating" else "other:rating" for name in names]
    names[header.index("click")] = "rating"
    return delimited.from_table(table, names, 1, found=header)
