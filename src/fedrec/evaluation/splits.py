"""Splits: which interactions are trained on, which choose the round, which are reported.

A split returns TRAIN, VALID or TEST for each interaction. It depends on the seed and on the data's own ids
only, never on the order of rows.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol as Interface

import numpy as np
from numpy.typing import NDArray

from fedrec import keyed
from fedrec.data.interactions import TEST, TRAIN, VALID, Interactions
from fedrec.data.ragged import Int64
from fedrec.errors import BadInput

Parts = NDArray[np.int8]


class Split(Interface):
    """Anything that assigns a part to each interaction."""

    def __call__(self, data: Interactions, seed: int) -> Parts: ...


@dataclass(frozen=True)
class LeaveOneOut:
    """One item a user for the test, one for validation, the rest to learn from.

    By time, where the data has it::

        user a   o o o o o o V T        o  train
        user b   o o o V T              V  validation: the second to last
        user c   o o o o o V T          T  test: the last
                 ------------> time

    Without time both are drawn at random, by the seed::

        user a   o V o o o o T o
        user b   T o o V o
    """

    def __call__(self, data: Interactions, seed: int) -> Parts:
        short = int(np.count_nonzero(np.bincount(data.users, minlength=data.n_users) < 3))
        if short:
            raise BadInput(
                f"{short} of {data.n_users} users of {data.name} have fewer than 3 interactions, which leave-one-out "
                "with validation needs; --min-interactions 3 (or more) leaves them out"
            )
        order = time_order(data) if data.times is not None else random_order(data, seed)
        end = data.user_start[1:]
        part = np.full(len(data), TRAIN, np.int8)
        part[order[end - 1]] = TEST
        part[order[end - 2]] = VALID
        return part


@dataclass(frozen=True)
class RandomShare:
    """A random share of each user's items for the test, and a share of what is left for validation.

    ::

        user a   o o T o V o o o T o      o  train
        user b   o T o o o                V  validation: `valid` of the rest, rounded
        user c   o o o T o V o o o T o    T  test: `test` of all, rounded
    """

    test: float = 0.2
    valid: float = 0.1

    def __call__(self, data: Interactions, seed: int) -> Parts:
        order = random_order(data, seed)
        start = data.user_start
        counts = np.diff(start)
        n_test = np.floor(self.test * counts + 0.5).astype(np.int64)
        n_valid = np.floor(self.valid * (counts - n_test) + 0.5).astype(np.int64)
        place = np.arange(len(data)) - np.repeat(start[:-1], counts)
        bound = np.repeat(n_test, counts)
        part = np.full(len(data), TRAIN, np.int8)
        part[order] = np.where(place < bound, TEST, np.where(place < bound + np.repeat(n_valid, counts), VALID, TRAIN))
        return part


@dataclass(frozen=True)
class WholeUsers:
    """A random share of users for the test and one for validation, whole: only the last item of each is held out.

    ::

        user a   o o o o o o o o        o  train
        user b   h h h h V              h  given when the user is served: nobody has trained on it
        user c   o o o o o              V  validation: the last item of a new user
        user d   h h h T                T  test: the last item of another new user

    Without time the held-out item is drawn by the seed. A user with one item has no history to be served by and is
    trained on.
    """

    share: float = 0.1

    def __call__(self, data: Interactions, seed: int) -> Parts:
        order = time_order(data) if data.times is not None else random_order(data, seed)
        start = data.user_start
        able = np.flatnonzero(np.diff(start) > 1)
        count = round(self.share * data.n_users)
        if count < 1 or 2 * count >= len(able):
            raise BadInput(
                f"{data.name} has {len(able)} users with 2 interactions or more; to hold out {self.share:.0%} of users "
                f"for validation and as many for the test it needs {max(3, round(0.5 / self.share))} or more"
            )
        words = keyed.streams(keyed.stream(seed, "new users"), data.user_keys[able])
        new = able[np.argsort(words, kind="stable")[: 2 * count]]
        part = np.full(len(data), TRAIN, np.int8)
        part[order[start[new[:count] + 1] - 1]] = VALID
        part[order[start[new[count:] + 1] - 1]] = TEST
        return part


@dataclass(frozen=True)
class Given:
    """The parts that the data brings along.

    ::

        train file   a: o o o o   b: o o o
        valid file   a: V         b:            a user may have none,
        test file    a: T T T     b: T          or several
    """

    def __call__(self, data: Interactions, seed: int) -> Parts:
        if data.part is None:
            raise BadInput(f"{data.name} is not ready split: it has no train, valid and test parts")
        return np.asarray(data.part, np.int8)


def random_order(data: Interactions, seed: int) -> Int64:
    """Rows by user, each user's in an order drawn by the seed and by the ids of user and item."""
    return np.lexsort((pair_words(data, keyed.stream(seed, "split")), data.users))


def time_order(data: Interactions) -> Int64:
    """Rows by user and time. Equal times stand in a fixed random order, the same for every seed.

    Without times, in the order of the source.
    """
    if data.times is None:
        return np.argsort(data.users, kind="stable")
    order = np.arange(len(data))
    same_user = data.users[1:] == data.users[:-1]
    later = np.where(same_user, data.times[1:] >= data.times[:-1], data.users[1:] > data.users[:-1])
    rows = order  # to be ordered: all of them, or those of equal times alone where the rest stands in order already
    if later.all():
        level = same_user & (data.times[1:] == data.times[:-1])
        rows = np.flatnonzero(np.append(level, False) | np.append(False, level))
    words = pair_words(data, keyed.stream(0, "equal times"), rows)
    order[rows] = rows[np.lexsort((words, data.times[rows], data.users[rows]))]
    return order


def pair_words(data: Interactions, base: int, rows: Int64 | slice = slice(None)) -> keyed.U64:
    """``[rows]`` a random word for each pair, by the data's own ids of user and item."""
    users = keyed.streams(base, data.user_keys)
    items = keyed.mix(keyed.keys_of(data.item_ids))
    return keyed.mix(users[data.users[rows]] ^ items[data.items[rows]])
