"""Adding clients' rows to a table, one after the other in 64 bits (numba)."""

from __future__ import annotations

from typing import Any

import numpy as np
from numba import types

from fedrec.compiled import njit


def _signatures() -> list[Any]:
    """Explicit ones: read-only input must not compile another variant."""

    def of(kind: Any, axes: int = 1) -> Any:
        return types.Array(kind, axes, "C", readonly=True)

    return [
        types.void(types.float64[:, ::1], of(types.int64), of(types.int32), of(values, 2), of(types.float64))
        for values in (types.float32, types.float64)
    ]


@njit(_signatures(), cache=True, nogil=True)
def add_weighted(total, start, ids, values, weights):
    """``total[ids[r]] += weights[c] * values[r]`` for the rows ``r`` of each client ``c``; ids are not checked."""
    wide = values.shape[1]
    for c in range(len(start) - 1):
        weight = weights[c]
        for r in range(start[c], start[c + 1]):
            row = np.uint64(ids[r])
            for k in range(wide):
                total[row, k] += weight * np.float64(values[r, k])
