"""Tables as CSV."""

from __future__ import annotations

import csv
import io
from collections.abc import Iterable, Sequence
from typing import Any


def csv_text(header: Sequence[str], rows: Iterable[Sequence[Any]]) -> str:
    """A header and its rows.

    >>> csv_text(["item", "title"], [[1, "Rock, The"]])
    'item,title\\n1,"Rock, The"\\n'
    """
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(header)
    writer.writerows(rows)
    return text.getvalue()
