"""The best columns of rows of scores (numba)."""

from __future__ import annotations

import numpy as np

from fedrec.compiled import njit


@njit(nogil=True, cache=True)
def best_of_rows(rows, scores, columns, items, values):  # type: ignore[no-untyped-def]
    """For rows of scores: the best of ``columns`` (ascending) into ``items`` and their scores into ``values``, falling.

    Of equal scores the first column wins. Scores that are not finite, or -inf for what is left out, are not listed.
    """
    k = items.shape[1]
    for row in rows:
        line, found, best = scores[row], items[row], values[row]
        filled = 0
        for column in columns:
            value = line[column]
            if not (value > -np.inf and value < np.inf):
                continue
            if filled == k and not value > best[k - 1]:
                continue
            place = filled if filled < k else k - 1
            while place > 0 and best[place - 1] < value:
                best[place], found[place] = best[place - 1], found[place - 1]
                place -= 1
            best[place], found[place] = value, column
            if filled < k:
                filled += 1
        for place in range(filled, k):
            best[place], found[place] = np.nan, -1
