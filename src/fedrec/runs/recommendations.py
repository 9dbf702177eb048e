"""Lists of recommended items, out of scores."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fedrec.data.ragged import Int32, Int64, Ragged
from fedrec.errors import BadInput
from fedrec.extras import installed
from fedrec.threads import over_rows


@dataclass(frozen=True)
class Recommendation:
    """One recommended item."""

    rank: int
    item: str
    title: str | None
    score: float


def check_k(k: int) -> None:
    """A number of items that is none is bad input."""
    if isinstance(k, bool) or not isinstance(k, int | np.integer):
        raise BadInput(f"k is {k!r}; give a whole number of items, such as 10")
    if k < 1:
        raise BadInput(f"k is {k}; ask for at least 1 item")


def best_columns(
    scores: NDArray[Any], owned: Ragged, k: int, columns: Int64 | None = None
) -> tuple[Int32, NDArray[np.float32]]:
    """Items and scores ``[users, k]`` of the best of ``columns`` (all where None) that the user does not own.

    Falling scores, of equal ones the first item; -1 and NaN where a list is shorter than ``k``.
    """
    check_k(k)
    own = np.array(scores, np.float32)
    own[owned.owners, owned.values] = -np.inf
    columns = np.arange(own.shape[1]) if columns is None else columns
    k = min(k, max(1, len(columns)))
    items, values = np.empty((len(own), k), np.int32), np.empty((len(own), k), np.float32)
    if installed("numba"):
        from fedrec.runs.top_kernel import best_of_rows

        over_rows(best_of_rows, len(own), (own, columns, items, values))
        return items, values
    own[~np.isfinite(own)] = -np.inf
    some = np.full((len(own), k), -np.inf, np.float32) if not len(columns) else own[:, columns]
    order = np.argsort(-some, axis=1, kind="stable")[:, :k]
    values[:] = np.take_along_axis(some, order, axis=1)
    items[:] = columns[order] if len(columns) else -1
    items[values == -np.inf], values[values == -np.inf] = -1, np.nan
    return items, values


def best_items(scores: Any, owned: Any, item_ids: Any, titles: Any, k: int) -> list[Recommendation]:
    """The ``k`` best of ``scores`` ``[n_items]``, none of which is in ``owned``; ``titles`` may be None."""
    one = Ragged(np.array([0, len(owned)]), np.asarray(owned, np.int32))
    items, values = best_columns(np.asarray(scores)[None], one, k)
    return listed(items[0], values[0], item_ids, titles)


def listed(items: Int32, values: NDArray[np.float32], item_ids: Any, titles: Any) -> list[Recommendation]:
    """One user's list for people: ids and titles, without the places that are empty."""
    return [
        Recommendation(place + 1, str(item_ids[i]), None if titles is None else str(titles[i]), float(value))
        for place, (i, value) in enumerate(zip(items, values, strict=True))
        if i >= 0
    ]
