"""Yelp's open data set: one JSON object a line, reviews in one file and businesses in another."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np

from fedrec.data.readers.rows import Rows
from fedrec.data.readers.table import moments
from fedrec.errors import BadInput


def read(path: Path) -> Rows:
    """Reviews (``user_id, business_id, stars, date``) with names from the file of businesses beside it.

    The file is gigabytes: it is gone through a line at a time and only four fields of each are kept.
    """
    import pyarrow as pa

    users: list[str] = []
    items: list[str] = []
    stars: list[float] = []
    dates: list[str] = []
    lines: list[int] = []
    for line, review in _objects(path):
        try:
            users.append(str(review["user_id"]))
            items.append(str(review["business_id"]))
            stars.append(float(review["stars"]))
            dates.append(str(review["date"]))
        except (KeyError, TypeError, ValueError) as problem:
            raise BadInput(
                f"{path} line {line}: a review needs user_id, business_id, stars and date ({problem!r})"
            ) from problem
        lines.append(line)
    if not users:
        raise BadInput(f"{path} is empty; it needs at least one review")
    times, bad = moments(pa.chunked_array([dates], pa.string()))
    if bad is not None:
        raise BadInput(f"{path} line {lines[bad]}: date {dates[bad]!r} is not like '2018-07-07 22:09:11'")
    return Rows(
        users=pa.chunked_array([users], pa.string()),
        items=pa.chunked_array([items], pa.string()),
        ratings=np.array(stars, np.float64),
        times=times,
        titles=_names(path, set(items)),
        place=lambda row: f"{path} line {lines[row]}",
    )


def _objects(path: Path) -> Iterator[tuple[int, dict[str, Any]]]:
    try:
        with path.open(encoding="utf-8") as lines:
            for number, line in enumerate(lines, start=1):
                if line.strip():
                    found = json.loads(line)
                    if not isinstance(found, dict):
                        raise BadInput(f"{path} line {number}: not a JSON object")
                    yield number, found
    except OSError as problem:
        raise BadInput(f"cannot read {path}: {problem.strerror}") from problem
    except UnicodeDecodeError as problem:
        raise BadInput(f"cannot read {path}: not utf-8 text") from problem
    except json.JSONDecodeError as problem:
        raise BadInput(f"{path} line {number}: not JSON ({problem.msg})") from problem


def _names(reviews: Path, wanted: set[str]) -> dict[str, str] | None:
    beside = reviews.with_name(reviews.name.replace("review", "business"))
    if beside == reviews or not beside.is_file():
        return None
    return {
        str(shop["business_id"]): str(shop.get("name", ""))
        for _, shop in _objects(beside)
        if shop.get("business_id") in wanted
    }
