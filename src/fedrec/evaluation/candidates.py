"""Sampled candidates: items a user never touched, among which the held-out item is ranked.

A user's candidates are the first ``count`` distinct unobserved items of that user's own random stream. They
depend on the seed, the user's own id and the part alone, so neither the order of users nor the block they are
computed in matters.
"""

from __future__ import annotations

import numpy as np

from fedrec import keyed
from fedrec.data.ragged import Int32, Int64, Ragged

NONE = -1
"""Marks a missing candidate, where a user has fewer unobserved items than asked for."""

_CELLS = 1 << 21  # numbers held at once


def draw(streams: keyed.U64, observed: Ragged, n_items: int, count: int) -> Int32:
    """``[users, count]`` distinct items outside ``observed`` (sorted per user), by each user's stream.

    Users with plenty left draw and reject; where observed items are many against the catalogue, or the
    catalogue is small, the whole catalogue is permuted instead. Which of the two depends on the user alone.
    """
    chosen = np.full((len(streams), count), NONE, np.int32)
    left = n_items - observed.counts
    permuted = (left < 4 * count) | (left < n_items // 8)
    for users, work in ((np.flatnonzero(permuted), _permute), (np.flatnonzero(~permuted), _reject)):
        width = n_items if work is _permute else 2 * count
        step = max(1, _CELLS // max(width, 1))
        for begin in range(0, len(users), step):
            some = users[begin : begin + step]
            chosen[some] = work(streams[some], observed.take(some), n_items, count)
    return chosen


def _permute(streams: keyed.U64, observed: Ragged, n_items: int, count: int) -> Int32:
    """All items in the order of their random words, observed ones last."""
    order = keyed.words(streams, n_items) >> np.uint64(1)  # [users, n_items], top bit free
    order[observed.owners, observed.values] = np.uint64(2**64 - 1)
    picked = np.argsort(order, axis=1, kind="stable")[:, :count].astype(np.int32)
    left = n_items - observed.counts
    picked[np.arange(picked.shape[1])[None, :] >= left[:, None]] = NONE
    if picked.shape[1] < count:
        picked = np.pad(picked, ((0, 0), (0, count - picked.shape[1])), constant_values=NONE)
    return np.asarray(picked, np.int32)


def _reject(streams: keyed.U64, observed: Ragged, n_items: int, count: int) -> Int32:
    """Draw until ``count`` distinct unobserved items are found; more words continue the same stream."""
    chosen = np.full((len(streams), count), NONE, np.int32)
    taken = observed.owners * n_items + observed.values  # ascending: lists are sorted
    users, width = np.arange(len(streams)), 2 * count
    while len(users):
        drawn = _items(keyed.words(streams[users], width), n_items)  # [users, width]
        usable = ~_contains(taken, users[:, None] * n_items + drawn) & _first_time(drawn)
        order = np.cumsum(usable, axis=1)
        done = order[:, -1] >= count
        keep = usable & (order <= count) & done[:, None]
        chosen[users[done]] = drawn[keep].reshape(-1, count)
        users, width = users[~done], 2 * width
    return chosen


def _items(words: keyed.U64, n_items: int) -> Int64:
    """Uniform items from random words, by multiplication of the upper half."""
    return (((words >> np.uint64(32)) * np.uint64(n_items)) >> np.uint64(32)).astype(np.int64)


def _contains(sorted_values: Int64, wanted: Int64) -> np.ndarray:
    """Whether each wanted value is among the sorted ones."""
    if len(sorted_values) == 0:
        return np.zeros(wanted.shape, bool)
    place = np.minimum(np.searchsorted(sorted_values, wanted), len(sorted_values) - 1)
    return np.asarray(sorted_values[place] == wanted)


def _first_time(drawn: Int64) -> np.ndarray:
    """Whether each value did not occur earlier in its row."""
    order = np.argsort(drawn, axis=1, kind="stable")
    ranked = np.take_along_axis(drawn, order, axis=1)
    fresh = np.ones(drawn.shape, bool)
    fresh[:, 1:] = ranked[:, 1:] != ranked[:, :-1]
    result = np.empty_like(fresh)
    np.put_along_axis(result, order, fresh, axis=1)
    return result
