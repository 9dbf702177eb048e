"""The public item catalogue of a run: ids that everybody may know, in the order that numbers them."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from fedrec.data.interactions import numeric_order
from fedrec.errors import BadInput


def read_catalogue(path: Path) -> tuple[str, ...]:
    """Item ids, one a line; ordered as data is (by number where all are whole numbers, else by text).

    So the numbering does not depend on the file's order, and equals that of the same items read as data.
    """
    if not path.is_file():
        raise BadInput(f"{path} is not a file; give a text file with one item id a line")
    lines = [line.strip() for line in path.read_text(encoding="utf-8").splitlines()]
    listed = [line for line in lines if line]
    if len(listed) < 2:
        raise BadInput(f"{path} lists {len(listed)} items; a catalogue has at least 2, one id a line")
    if len(set(listed)) < len(listed):
        twice = next(item for item in listed if listed.count(item) > 1)
        raise BadInput(f"{path} lists {twice!r} twice; list each item once")
    ids = np.array(listed, dtype=np.str_)
    whole = all(item.lstrip("-").isdecimal() for item in listed)
    order = numeric_order(ids) if whole else np.argsort(ids, kind="stable")
    return tuple(str(item) for item in ids[order])
