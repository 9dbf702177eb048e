"""Rows that stand beside the numbers of their items: a table of which only some rows are sent."""

from __future__ import annotations

import dataclasses
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fedrec.attacks.contract import Float64
from fedrec.core.messages import Limit


def listed_tables(message: Any, m: int) -> dict[str, Float64]:
    """``[n_items, width]`` for each field whose rows a field of item numbers names; a number of ``m`` names nothing."""
    if not dataclasses.is_dataclass(message):
        return {}
    arrays = [(f, getattr(message, f.name)) for f in dataclasses.fields(message)]
    arrays = [(f, content) for f, content in arrays if isinstance(content, np.ndarray)]
    numbers = [content for f, content in arrays if _names_items(f) and content.ndim == 2 and len(content) == 1]
    found: dict[str, Float64] = {}
    for spec, content in arrays:
        for ids in numbers:
            if content.dtype.kind == "f" and content.ndim == 3 and content.shape[:2] == ids.shape:
                found[spec.name] = _placed(ids[0], content[0], m)
    return found


def _names_items(spec: dataclasses.Field[Any]) -> bool:
    return getattr(spec.metadata.get("range"), "high", None) in (Limit.ITEM, Limit.ITEMS)


def _placed(ids: NDArray[Any], rows: NDArray[Any], m: int) -> Float64:
    table = np.zeros((m + 1, rows.shape[1]))  # the row behind the last takes what is nobody's
    np.add.at(table, ids, rows)
    return table[:m]
