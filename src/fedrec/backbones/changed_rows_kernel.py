"""What changed rows of a client's table add to its users' scores (numba): nothing is gathered."""

from __future__ import annotations

import numpy as np

from fedrec.compiled import njit


@njit(nogil=True, cache=True)
def add_changed(rows, owners, start, ids, values, users, scores):  # type: ignore[no-untyped-def]
    """``scores[row, ids[i]] += values[i] . users[row]`` for the changed rows ``i`` of the row's client."""
    width = users.shape[1]
    for row in rows:
        own, into = users[row], scores[row]
        for i in range(start[owners[row]], start[owners[row] + 1]):
            change, total = values[i], np.float32(0)
            for place in range(width):
                total += change[place] * own[place]
            into[ids[i]] += total
