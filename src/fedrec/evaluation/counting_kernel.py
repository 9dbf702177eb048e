"""How many items stand before a held-out item and how many are level with it, for all users in one pass (numba).

No mask and no copy of the scores is made: a row is read once for both parts, and what is not ranked is taken off
again while the row is at hand. Counts are whole numbers, so the result does not depend on threads.
"""

from __future__ import annotations

import numpy as np

from fedrec.compiled import njit

_LARGEST = np.float32(np.finfo(np.float32).max)


@njit(nogil=True, cache=True)
def count_parts(rows, scores, who, first, second, counts, finite):  # type: ignore[no-untyped-def]
    """Counts of both parts for rows of scores; row ``i`` is of the user ``who[i]``.

    A part is ``(items [users], start [users + 1], masked, candidates [users, n])``; an item below zero is none, and so
    is such a candidate. ``counts[who[i], part]`` becomes ``greater, tied`` among all items and among the candidates,
    the item itself tied; ``finite[i]`` says whether all scores of the row are finite numbers.
    """
    for row in rows:
        line, user = scores[row], who[row]
        a, b = _own(line, first[0][user]), _own(line, second[0][user])
        if second[0][user] >= 0:
            above_a, level_a, above_b, level_b, fine = _pair(line, a, b)
        else:
            above_a, level_a, fine = _single(line, a)
            above_b, level_b = np.int32(0), np.int32(0)
        finite[row] = fine == len(line)
        _settle(line, a, user, first, above_a, level_a, counts[user, 0])
        _settle(line, b, user, second, above_b, level_b, counts[user, 1])


@njit(nogil=True, cache=True)
def _own(line, item):  # type: ignore[no-untyped-def]
    return line[item] if item >= 0 else np.float32(np.inf)


@njit(nogil=True, cache=True)
def _pair(line, a, b):  # type: ignore[no-untyped-def]
    """Scores above and level with either, and finite ones."""
    above_a, level_a, above_b, level_b, fine = np.int32(0), np.int32(0), np.int32(0), np.int32(0), np.int32(0)
    for place in range(np.uint64(len(line))):  # an unsigned count, and 32-bit sums: so the loop becomes vector code
        value = line[place]
        above_a = np.int32(above_a + np.int32(value > a))
        level_a = np.int32(level_a + np.int32(value == a))
        above_b = np.int32(above_b + np.int32(value > b))
        level_b = np.int32(level_b + np.int32(value == b))
        fine = np.int32(fine + np.int32(abs(value) <= _LARGEST))
    return above_a, level_a, above_b, level_b, fine


@njit(nogil=True, cache=True)
def _single(line, a):  # type: ignore[no-untyped-def]
    above, level, fine = np.int32(0), np.int32(0), np.int32(0)
    for place in range(np.uint64(len(line))):
        value = line[place]
        above = np.int32(above + np.int32(value > a))
        level = np.int32(level + np.int32(value == a))
        fine = np.int32(fine + np.int32(abs(value) <= _LARGEST))
    return above, level, fine


@njit(nogil=True, cache=True)
def _settle(line, own, user, part, above, level, into):  # type: ignore[no-untyped-def]
    """Take off what is not ranked, and count among the candidates."""
    _, start, masked, candidates = part
    for place in range(start[user], start[user + 1]):
        above -= line[masked[place]] > own
        level -= line[masked[place]] == own
    greater, tied = 0, 1
    for item in candidates[user]:
        if item >= 0:
            greater += line[item] > own
            tied += line[item] == own
    into[0], into[1], into[2], into[3] = above, level, greater, tied
