"""A split made by somebody else: a folder with train, valid and test files, titles in ``movies.dat``."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from functools import partial
from itertools import combinations
from pathlib import Path

import numpy as np
import pyarrow as pa

from fedrec.data.interactions import TEST, TRAIN, VALID
from fedrec.data.readers import delimited, movielens, parquet_table
from fedrec.data.readers.rows import Rows
from fedrec.data.readers.values import DAY_FIRST, MONTH_FIRST, ORDER, SECONDS
from fedrec.errors import BadInput

PARTS = {"train": TRAIN, "valid": VALID, "test": TEST}
ENDINGS = (".tsv", ".csv", ".parquet", ".pq", ".tsv.gz", ".csv.gz")


def part_files(folder: Path) -> dict[str, Path]:
    """The file of each part that is there."""
    found: dict[str, Path] = {}
    inside = folder.iterdir() if folder.is_dir() else ()
    files = sorted(path for path in inside if path.name.lower().startswith(tuple(PARTS)) and path.is_file())
    for part in PARTS:
        there = [path for end in ENDINGS for path in files if path.name.lower() == f"{part}{end}"]
        if len(there) > 1:
            names = ", ".join(path.name for path in there)
            raise BadInput(f"{folder} has several files for {part!r}: {names}; keep one")
        if there:
            found[part] = there[0]
    return found


def _check_columns(folder: Path, parts: Mapping[str, Rows]) -> None:
    """A part without a header has its columns in the usual order: not if a header says another one elsewhere."""
    order = {
        name: tuple(what for what, _ in rows.understood.columns)
        for name, rows in parts.items()
        if rows.understood is not None and rows.understood.columns
    }
    headless = [name for name in order if any("no header" in note for note in parts[name].notes)]
    for name in headless:
        other = next((one for one in order if one not in headless and order[one] != order[name]), None)
        if other is not None:
            raise BadInput(
                f"{folder}: {other} says that its columns are {', '.join(order[other])}, but {name} has no header; "
                "give all parts the same header"
            )


def _check_times(folder: Path, parts: Mapping[str, Rows]) -> None:
    """Times of one part can be compared with those of another, as in one file."""
    written = {name: rows.understood.times for name, rows in parts.items() if rows.understood is not None}
    for (name, one), (other_name, other) in combinations(written.items(), 2):
        if one is not None and other is not None and not _comparable({one, other}):
            raise BadInput(f"{folder}: times of {name} are {one}, those of {other_name} {other}; write all in one way")


def _comparable(kinds: set[str]) -> bool:
    """Whether times of these kinds are in one unit: dates are in seconds, and no order."""
    numbers = {kind for kind in kinds if "dates" not in kind}
    if not numbers:
        return not kinds >= {DAY_FIRST, MONTH_FIRST}
    return len(kinds) == 1 or kinds == {ORDER, SECONDS} or numbers == {SECONDS}


def read(folder: Path, *, chosen: Mapping[str, str] | None = None) -> Rows:
    """All parts, one after another, with ``part`` saying which; ``chosen``: meaning to column name."""
    files = part_files(folder)
    for part in ("train", "test"):
        if part not in files:
            raise BadInput(f"{folder} is not a ready split: no {part} file ({part}.tsv, .csv or .parquet)")
    pieces: list[tuple[str, Rows]] = []
    for part, path in files.items():
        reader = (
            parquet_table.read if path.suffix.lower() in (".parquet", ".pq") else partial(delimited.read, alone=False)
        )
        pieces.append((part, reader(path, chosen=chosen, share=0.0)))
    rows = [piece for _, piece in pieces]
    by_name = {files[part].name: piece for part, piece in pieces}
    _check_columns(folder, by_name)
    _check_times(folder, by_name)
    for what in ("times", "clients", "ratings"):
        if len({getattr(piece, what) is None for piece in rows}) > 1:
            lacking = next(files[part].name for part, piece in pieces if getattr(piece, what) is None)
            raise BadInput(
                f"{folder}: {lacking} has no {what[:-1]} column, but the other parts have; give it to all or none"
            )
    first_row = np.concatenate([[0], np.cumsum([len(piece) for piece in rows])])

    def place(row: int) -> str:
        which = int(np.searchsorted(first_row, row, side="right")) - 1
        return rows[which].place(row - int(first_row[which]))

    def text(what: str) -> pa.ChunkedArray:
        return pa.chunked_array([chunk for piece in rows for chunk in getattr(piece, what).chunks], pa.string())

    whole = Rows(
        users=text("users"),
        items=text("items"),
        ratings=None if rows[0].ratings is None else np.concatenate([piece.ratings for piece in rows]),
        times=None if rows[0].times is None else np.concatenate([piece.times for piece in rows]),
        clients=None if rows[0].clients is None else text("clients"),
        part=np.concatenate([np.full(len(piece), PARTS[part], np.int8) for part, piece in pieces]),
        place=place,
        given=True,
        notes=tuple(note for piece in rows for note in piece.notes),
        understood=None
        if rows[0].understood is None
        else replace(
            rows[0].understood,
            source=folder.name,
            form=f"ready split of {len(rows)} files, {rows[0].understood.form}",
            rows=sum(len(piece) for piece in rows),
            split=True,
        ),
    )
    own = {item: title for piece in rows for item, title in (piece.titles or {}).items()}
    if own:
        return replace(whole, titles=own)
    titled = whole.titled(folder / "train", ["movies.dat"], movielens.titles)
    stray = 0 if titled.titles is None else len(set(whole.items.unique().to_pylist()) - titled.titles.keys())
    if not stray:
        return titled
    # a split may have renumbered its items; titles of other ids would then be wrong titles
    note = f"{stray} items of the split are not in movies.dat, so its ids must be different: no titles"
    return replace(whole, notes=(*whole.notes, note))
