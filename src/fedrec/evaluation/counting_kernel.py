"""How many items stand before a held-out item and how many are level with it, for all users in one pass (numba).

No mask and no copy of the scores is made: a row is read once for both parts, and what is not ranked is taken off
again afterwards. Counts are whole numbers, so the result does not depend on threads.
"""

from __future__ import annotations

import numpy as np

from fedrec.compiled import njit

_LARGEST = np.float32(np.finfo(np.float32).max)


@njit(nogil=True, cache=True)
def count_pair(  # type: ignore[no-untyped-def]
    rows, scores, first, second, first_start, first_masked, second_start, second_masked, counts, finite
):
    """For rows of scores and two items of each (negative for none): ``counts[row] = greater, tied`` of either.

    ``finite[row]`` is how many scores are finite numbers.
    """
    columns = np.uint64(scores.shape[1])  # an unsigned count, and 32-bit sums: so the loop becomes vector code
    nothing = np.float32(np.inf)
    for row in rows:
        line = scores[row]
        a = line[first[row]] if first[row] >= 0 else nothing
        b = line[second[row]] if second[row] >= 0 else nothing
        above_a, level_a, above_b, level_b, fine = np.int32(0), np.int32(0), np.int32(0), np.int32(0), np.int32(0)
        for place in range(columns):
            value = line[place]
            above_a = np.int32(above_a + np.int32(value > a))
            level_a = np.int32(level_a + np.int32(value == a))
            above_b = np.int32(above_b + np.int32(value > b))
            level_b = np.int32(level_b + np.int32(value == b))
            fine = np.int32(fine + np.int32(abs(value) <= _LARGEST))
        for place in range(first_start[row], first_start[row + 1]):
            above_a -= line[first_masked[place]] > a
            level_a -= line[first_masked[place]] == a
        for place in range(second_start[row], second_start[row + 1]):
            above_b -= line[second_masked[place]] > b
            level_b -= line[second_masked[place]] == b
        counts[row, 0], counts[row, 1], counts[row, 2], counts[row, 3] = above_a, level_a, above_b, level_b
        finite[row] = fine


@njit(nogil=True, cache=True)
def count_among(rows, scores, target, candidates, counts):  # type: ignore[no-untyped-def]
    """``counts[row] = greater, tied`` among sampled candidates (negative for none), the target itself tied."""
    for row in rows:
        own = scores[row, target[row]] if target[row] >= 0 else np.float32(0)
        greater, tied = 0, 1
        for item in candidates[row]:
            if item >= 0:
                greater += scores[row, item] > own
                tied += scores[row, item] == own
        counts[row, 0], counts[row, 1] = greater, tied
