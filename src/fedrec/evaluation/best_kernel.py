"""The best items of each user in one pass over a row of scores (numba): no mask, no copy, no partition."""

from __future__ import annotations

import numpy as np

from fedrec.compiled import njit

_AT_ONCE = 64


@njit(nogil=True, cache=True)
def list_best(rows, scores, start, masked, neutral, items, values, level):  # type: ignore[no-untyped-def]
    """Fill ``items``, ``values`` ``[users, length]`` and ``level`` ``[users]`` for some rows of the scores.

    Items ``masked[start[row] : start[row + 1]]`` are not ranked. The order is that of the scores, equal ones by
    ``neutral``; places that are left have the value -inf.
    """
    n_items, length = scores.shape[1], items.shape[1]
    hidden = np.zeros(n_items, np.bool_)
    for row in rows:
        line, own = scores[row], masked[start[row] : start[row + 1]]
        for item in own:
            hidden[item] = True
        listed, best = items[row], values[row]
        best[:] = -np.inf
        found, bound = 0, best[0]
        for begin in range(0, n_items, _AT_ONCE):
            end = min(begin + _AT_ONCE, n_items)
            some = np.int32(0)
            for item in range(np.uint64(begin), np.uint64(end)):  # unsigned, 32-bit sums: so it becomes vector code
                some = np.int32(some + np.int32(line[item] >= bound))
            if not some:
                continue
            for item in range(begin, end):
                if line[item] >= bound and not hidden[item]:
                    found = _insert(item, line[item], neutral, listed, best, found)
                    if found == length:
                        bound = best[length - 1]
        if found < length:
            listed[found:] = 0
            level[row] = n_items - found
        else:
            level[row] = _equal(line, bound)
        for item in own:
            if hidden[item]:
                hidden[item] = False
                level[row] -= found == length and line[item] == bound


@njit(nogil=True, cache=True)
def _equal(line, value):  # type: ignore[no-untyped-def]
    found = np.int32(0)
    for place in range(np.uint64(len(line))):
        found = np.int32(found + np.int32(line[place] == value))
    return found


@njit(nogil=True, cache=True)
def _insert(item, value, neutral, items, values, found):  # type: ignore[no-untyped-def]
    """Put an item into a list where it belongs, if it does; gives the list's length."""
    length = len(items)
    if found == length:
        last = values[length - 1]
        if value < last or (value == last and neutral[item] > neutral[items[length - 1]]):
            return found
        place = length - 1
    else:
        place = found
        found += 1
    while place > 0:
        before = values[place - 1]
        if before > value or (before == value and neutral[items[place - 1]] < neutral[item]):
            break
        items[place], values[place] = items[place - 1], before
        place -= 1
    items[place], values[place] = item, value
    return found
