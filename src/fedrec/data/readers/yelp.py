"""Yelp's open data set: one JSON object a line, reviews in one file and businesses in another."""

from __future__ import annotations

import json
import math
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

from fedrec.data import limits
from fedrec.data.readers.faults import Faults
from fedrec.data.readers.meanings import require_ids
from fedrec.data.readers.rows import Rows
from fedrec.data.readers.values import moments
from fedrec.errors import BadInput


def read(path: Path) -> Rows:
    """Reviews (``user_id, business_id, stars, date``) with names from the file of businesses beside it.

    The file is gigabytes: it is gone through a line at a time and only four fields of each are kept.
    """
    users: list[str] = []
    items: list[str] = []
    stars: list[float] = []
    dates: list[str] = []
    lines: list[int] = []
    for line, review in _objects(path):
        try:
            mark = float(review["stars"])
            texts = [_text(review[name]) for name in ("user_id", "business_id", "date")]
            if not math.isfinite(mark):
                raise ValueError("stars are no number")
        except (KeyError, TypeError, ValueError, OverflowError) as problem:
            raise BadInput(
                f"{path} line {line}: a review needs user_id, business_id, stars and date "
                f"({limits.brief(repr(problem), 60)[1:-1]})"
            ) from problem
        stars.append(mark)
        for column, text in zip((users, items, dates), texts, strict=True):
            column.append(text)
        lines.append(line)
    if not users:
        raise BadInput(f"{path} is empty; it needs at least one review")

    def place(row: int) -> str:
        return f"{path} line {lines[row]}"

    times = moments(pa.chunked_array([dates], pa.string()))
    faults = Faults(len(users), place)
    faults.add(times.bad, lambda row: f"date {limits.brief(dates[row])} is not like '2018-07-07 22:09:11'")
    rows = Rows(
        users=pa.chunked_array([users], pa.string()),
        items=pa.chunked_array([items], pa.string()),
        ratings=np.array(stars, np.float64),
        times=times.values,
        place=place,
    )
    require_ids(rows.users, rows.items, faults)
    return replace(rows, titles=_names(path, set(items)))


def _text(value: object) -> str:
    if not isinstance(value, str | int):
        raise TypeError(f"{type(value).__name__} where text is expected")
    text = str(value)
    text.encode("utf-8")  # JSON can spell half a character
    return text


def _objects(path: Path) -> Iterator[tuple[int, dict[str, Any]]]:
    number = 0
    try:
        if path.exists() and not path.is_file():
            raise BadInput(f"cannot read {path}: not a plain file")
        with path.open("rb") as lines:
            while line := lines.readline(limits.LINE + 1):
                number += 1
                if len(line) > limits.LINE:
                    raise BadInput(f"{path} line {number}: longer than {limits.size(limits.LINE)}")
                if line.strip():
                    found = json.loads(line.decode("utf-8"))
                    if not isinstance(found, dict):
                        raise BadInput(f"{path} line {number}: not a JSON object")
                    yield number, found
    except OSError as problem:
        raise BadInput(f"cannot read {path}: {problem.strerror}") from problem
    except UnicodeDecodeError as problem:
        raise BadInput(f"{path} line {number}: not utf-8 text") from problem
    except (ValueError, RecursionError) as problem:
        raise BadInput(f"{path} line {number}: not JSON ({limits.brief(problem, 60)[1:-1]})") from problem


def _names(reviews: Path, wanted: set[str]) -> dict[str, str] | None:
    beside = reviews.with_name(reviews.name.replace("review", "business"))
    if beside == reviews or not beside.is_file():
        return None
    found: dict[str, str] = {}
    for _, shop in _objects(beside):
        key, name = shop.get("business_id"), shop.get("name", "")
        if isinstance(key, str) and key in wanted and isinstance(name, str):
            found[key] = name.encode("utf-8", "replace").decode("utf-8")
    return found
