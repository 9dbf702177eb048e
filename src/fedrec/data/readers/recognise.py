"""Which reader a file needs: by its name, else by its first lines."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Mapping
from fnmatch import fnmatchcase
from pathlib import Path

from fedrec.data.readers import columns, content, delimited, packing, sequences
from fedrec.data.readers.values import NUMBER
from fedrec.errors import BadInput

KNOWN_FILES: tuple[tuple[str, str], ...] = (
    ("*.inter", "recbole"),
    ("u.data", "movielens-tabs"),
    ("user_artists.dat", "lastfm"),
    ("BX-Book-Ratings.csv", "book-crossing"),
    ("dataset_TSMC2014_*.txt", "foursquare"),
    ("*review*.json", "yelp"),
    ("QB-article.csv", "tenrec"),
    ("MicroLens-100k_pairs.csv", "microlens"),
    ("*.parquet", "parquet"),
    ("*.pq", "parquet"),
)
"""File names that say their format."""
JSON = re.compile(r'\s*(\{\s*"|\[\s*[\[{"]|[\[{]\s*$)')
"""How a first line of JSON begins, which a first line of a table does not."""
COLONS = "ratings.dat"
"""The name of MovieLens' own file with '::'."""


def format_of(path: Path, chosen: Mapping[str, str] | None = None) -> str:
    """The name of the reader for a file; ``chosen``: meaning to column name, which only a table has."""
    for pattern, reader in KNOWN_FILES:
        if fnmatchcase(path.name.lower(), pattern.lower()):
            return reader
    if packing.is_parquet(path):
        return "parquet"
    if packing.kind_of(path) and content.head(path, len(packing.PARQUET)) == packing.PARQUET:
        raise BadInput(f"{path} is a packed Parquet file; unpack it")
    lines = delimited.head_lines(path)[: delimited.LINES]
    if lines and JSON.match(lines[0]):
        raise BadInput(f"{path} is JSON; save it as CSV (user,item,rating,timestamp) or as Parquet")
    if lines and _is_movielens(path, lines, chosen):
        return "movielens-colons"
    if chosen or is_table(lines):
        return "delimited"
    return "sequences" if sequences.looks_like(lines) else "delimited"


def _is_movielens(path: Path, lines: list[str], chosen: Mapping[str, str] | None) -> bool:
    """Whether a file with '::' is as MovieLens has it: by its name, or four numbers a line and no header."""
    cells = lines[0].strip().split("::")
    if delimited.sniff(lines[0], lines[1:]) != "::" or columns.is_header(cells, chosen):
        return False
    named = path.name.lower().startswith(COLONS)
    return len(cells) == 4 and (named or all(re.match(NUMBER, cell) for cell in cells))


def is_table(lines: list[str]) -> bool:
    """Whether these first lines are surely a table: a header names user and item, or tabs or | stand as in one.

    Titles hold blanks, so that words in a line say nothing about its cells.
    """
    if not lines:
        return False
    cells = [cell.strip().strip('"') for cell in lines[0].split(delimited.sniff(lines[0], lines[1:]))]
    if {"user", "item"} <= {columns.meaning(cell) for cell in cells}:
        return True
    for mark in ("|", "\t"):
        counts = [line.count(mark) for line in lines]
        usual = max(set(counts), key=counts.count)
        share = counts.count(usual) / len(lines)
        few = mark == "|" or usual < len(columns.BY_POSITION)
        # a torn row makes a bad table, not another format; one line with many tabs may be a user with items
        if usual and (share >= 0.8 if few else share == 1 and len(lines) > 1):
            if usual > 1 or mark == "|":
                return True
            if all(map(_user_then_items, lines)):
                return False
            _refuse_doubtful([line.split("\t")[-1].strip() for line in lines if line.count("\t") == 1])
            return True
    return False


def _refuse_doubtful(cells: list[str]) -> None:
    """Refuse what stands behind the tabs where it may as well be titles as lists of items: no text of several words is
    there twice, though most of its words are."""
    several = [cell.split() for cell in cells if " " in cell]
    lines_of = Counter(word for cell in cells for word in set(cell.split()))
    words = [word for cell in several for word in cell]
    again = sum(lines_of[word] > 1 for word in words)
    if len(several) > 1 and len(set(map(tuple, several))) == len(several) and 2 * again >= len(words):
        raise BadInput(
            "what stands behind the tab may be titles, or a user's items with blanks between: put a header above it "
            "(user and item), or a blank in the place of the tab"
        )


def _user_then_items(line: str) -> bool:
    """Whether what follows the tab are ids with blanks between, as in a line of a sequence file, and not a title."""
    return all(any(sign.isdigit() for sign in word) for word in line.split("\t")[-1].split())
