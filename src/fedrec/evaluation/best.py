"""The best items of each user, of those that are ranked."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from fedrec import keyed
from fedrec.data.ragged import Int64, Ragged
from fedrec.evaluation.held import Float32
from fedrec.extras import installed
from fedrec.threads import over_rows

_CELLS = 1 << 22  # scores copied at once where there is no compiler


@dataclass(frozen=True)
class Best:
    """Lists of the best items, in descending order; equal scores in the order of a hash, which favours nobody."""

    items: Int64  # [users, length]
    values: Float32  # [users, length], -inf where nothing is left to rank
    level: Int64  # [users]
    """How many items of the whole catalogue have the value of the last place."""

    def first(self, length: int) -> Best:
        """The same lists, shorter."""
        if length >= self.items.shape[1]:
            return self
        last = self.values[:, length - 1, None]
        inside = np.count_nonzero(self.values == last, axis=1)  # all of them, where the list goes on below
        level = np.where(last[:, 0] == self.values[:, -1], self.level, inside)
        return Best(self.items[:, :length], self.values[:, :length], level)


def best_of(scores: Float32, masked: Ragged, length: int) -> Best:
    """The ``length`` best items of each user by scores ``[users, n_items]``; ``masked`` ones are not ranked."""
    users, n_items = scores.shape
    length = min(length, n_items)
    if len(masked.values) and not 0 <= masked.values.min() <= masked.values.max() < n_items:  # a kernel does not look
        raise IndexError(f"masked items go up to {masked.values.max()}, but {n_items} items have scores")
    made = Best(np.empty((users, length), np.int64), np.empty((users, length), scores.dtype), np.empty(users, np.int64))
    if not (users and length):
        return made
    neutral = keyed.mix(np.arange(n_items, dtype=np.uint64) + np.uint64(1))
    if installed("numba"):
        from fedrec.evaluation.best_kernel import list_best

        given = (np.ascontiguousarray(scores), masked.start, masked.values, neutral)
        over_rows(list_best, users, (*given, made.items, made.values, made.level))
        return made
    step = max(1, _CELLS // n_items)
    for begin in range(0, users, step):
        some = np.arange(begin, min(begin + step, users))
        found = _by_partition(scores[some], masked.take(some), length, neutral)
        made.items[some], made.values[some], made.level[some] = found.items, found.values, found.level
    return made


def _by_partition(ranked: Float32, masked: Ragged, length: int, neutral: keyed.U64) -> Best:
    """The same for a copy of some scores, which is changed."""
    n_items = ranked.shape[1]
    ranked[masked.owners, masked.values] = -np.inf
    bound = np.partition(ranked, n_items - length, axis=1)[:, n_items - length, None]
    chosen = ranked >= bound
    for user in np.flatnonzero(np.count_nonzero(chosen, axis=1) > length):  # several equal the last one listed
        equal = np.flatnonzero(ranked[user] == bound[user])
        surplus = np.count_nonzero(chosen[user]) - length
        chosen[user, equal[np.argsort(neutral[equal])[-surplus:]]] = False
    column = np.nonzero(chosen)[1].reshape(len(ranked), length)
    value = np.take_along_axis(ranked, column, axis=1)
    order = np.lexsort((neutral[column], -value), axis=1)
    level = np.count_nonzero(ranked == bound, axis=1)
    return Best(np.take_along_axis(column, order, axis=1), np.take_along_axis(value, order, axis=1), level)
