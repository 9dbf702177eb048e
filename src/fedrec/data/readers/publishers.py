"""Delimited tables as their publishers have them: Book-Crossing, Foursquare, LastFM, MicroLens, Tenrec."""

from __future__ import annotations

import html
from collections.abc import Mapping
from dataclasses import replace
from functools import partial
from pathlib import Path

import numpy as np
import pyarrow.compute as pc

from fedrec.data import limits
from fedrec.data.readers import columns, delimited, meanings
from fedrec.data.readers.faults import Faults
from fedrec.data.readers.rows import Rows
from fedrec.data.readers.table import Table
from fedrec.errors import BadInput

FOURSQUARE = ["user", "item", "category", "category_name", "latitude", "longitude", "zone", "time"]
MICROLENS_TITLES = ("MicroLens-100k_title_en.csv", "MicroLens-100k_title.csv", "MicroLens-100k_title_cn.csv")
_bx_table = partial(Table.open, delimiter=";", encoding="latin-1", escape="\\")
_lastfm_table = partial(Table.open, delimiter="\t", quoted=False)


def book_crossing(path: Path) -> Rows:
    """``BX-Book-Ratings.csv`` (semicolons, quotes, latin-1, backslash before a quote), titles from ``BX-Books.csv``.

    The publisher writes 0 for 'implicit': the reader has the book and gave no mark. That is an interaction,
    so every row counts here, whatever its rating.
    """
    table = _bx_table(path)
    rows = delimited.from_table(table, ["user", "item", "rating"], columns.is_header(table.first()))
    implicit = 0 if rows.ratings is None else int((rows.ratings == 0).sum())
    note = f"{implicit} rows are implicit (0 in the publisher's file) and count as interactions"
    rows = replace(rows, ratings=None, notes=(*rows.notes, *([note] if implicit else [])))

    def titles(beside: Path) -> Mapping[str, str]:  # has HTML entities, and some torn lines
        return {isbn: html.unescape(title) for isbn, title in _bx_table(beside).titles().items()}

    return rows.titled(path, ["BX-Books.csv"], titles)


def foursquare(path: Path) -> Rows:
    """Check-ins (``dataset_TSMC2014_NYC.txt``, ``_TKY.txt``); the name of its category stands for a venue's title."""
    table = Table.open(path, "\t", quoted=False, encoding="latin-1")
    place = partial(table.place, header_lines=0)
    data = table.parse(FOURSQUARE, 0, FOURSQUARE).data
    when = pc.strptime(data["time"], format="%a %b %d %H:%M:%S +0000 %Y", unit="s", error_is_null=True)
    if when.null_count:
        row = int(np.argmax(pc.is_null(when).to_numpy()))
        found = limits.brief(data["time"][row].as_py())
        raise BadInput(f"{place(row)}: time {found} is not like 'Tue Apr 03 18:00:09 +0000 2012'")
    meanings.require_ids(data["user"], data["item"], Faults(data.num_rows, place))
    return Rows(
        users=data["user"],
        items=data["item"],
        times=np.asarray(pc.cast(when, "int64").to_numpy(), dtype=np.int64),
        titles=meanings.titles_of(data["item"], data["category_name"]),
        place=place,
    )


def lastfm(path: Path) -> Rows:
    """HetRec 2011 LastFM-2K: ``user_artists.dat`` (user, artist, play count), names of artists from ``artists.dat``.

    Any artist listened to is an interaction; the header line may be missing.
    """
    table = _lastfm_table(path)
    rows = delimited.from_table(table, ["user", "item", "rating"], columns.is_header(table.first()))
    return rows.titled(path, ["artists.dat"], lambda beside: _lastfm_table(beside).titles("id<tab>name<tab>..."))


def microlens(path: Path) -> Rows:
    """``MicroLens-100k_pairs.csv``: user, video, milliseconds; the first file of titles beside it."""
    table = Table.open(path, ",")
    header = table.first()
    named = columns.is_header(header)
    names = columns.by_name(header, path) if named else ["user", "item", "time"]

    def titles(beside: Path) -> Mapping[str, str]:  # may hold commas that the publisher left unquoted
        return {cells[0]: ",".join(cells[1:]).strip() for _, cells in Table.open(beside, ",").lines() if len(cells) > 1}

    return delimited.from_table(table, names, named).titled(path, MICROLENS_TITLES, titles)


def tenrec(path: Path) -> Rows:
    """Tenrec's ``QB-article.csv`` (``user_id,item_id,click,...``): rows with click 1; the others are exposures."""
    table = Table.open(path, ",")
    header = [cell.strip() for cell in table.first()]
    if "click" not in header:
        raise BadInput(f"{path} has no 'click' column; columns found: {limits.names(header)}")
    names = [name if name != "rating" else "other:rating" for name in columns.by_name(header, path)]
    names[header.index("click")] = "rating"
    return delimited.from_table(table, names, 1, found=header)
