"""A task: data under a protocol, ready to be trained on and judged."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Literal

import numpy as np
from numpy.typing import NDArray

from fedrec import keyed
from fedrec.data.interactions import TEST, TRAIN, VALID, Interactions
from fedrec.data.ragged import Int64, Ragged, offsets
from fedrec.evaluation import candidates
from fedrec.evaluation.judging import Held
from fedrec.evaluation.splits import Parts, time_order

if TYPE_CHECKING:
    from fedrec.evaluation.protocols import Protocol

Part = Literal["valid", "test"]


@dataclass(frozen=True)
class Task:
    """What each user learns from and is judged on. Made by :meth:`Protocol.prepare`."""

    protocol: Protocol
    data: Interactions
    seed: int
    train: Ragged
    """Items each user learns from, in time order (the source's order where there is no time)."""
    exclude: Ragged
    """Items never drawn as a user's training negatives, sorted. Under the honest pool these are the training
    items; under the leaky pool all interactions, so that held-out items are never pushed down."""
    valid: Ragged
    """Items of each user that choose the round."""
    test: Ragged
    """Items of each user that are reported on."""

    @cached_property
    def user_keys(self) -> keyed.U64:
        """``[users]`` for keyed randomness: depends on the user's own id only."""
        return keyed.keys_of(self.data.user_ids)

    @cached_property
    def observed(self) -> Ragged:
        """All items each user ever touched, sorted: never sampled as candidates."""
        return sort_lists(by_user(self.data, np.argsort(self.data.users, kind="stable")))

    @cached_property
    def numbers(self) -> Int64 | None:
        """``[n_items]`` the data's own item numbers, where all ids are numbers."""
        ids = self.data.item_ids.tolist()
        return np.array([int(name) for name in ids], np.int64) if all(n.isdecimal() for n in ids) else None

    @cached_property
    def _trained(self) -> Ragged:
        return sort_lists(self.train)

    @cached_property
    def _trained_or_valid(self) -> Ragged:
        return union(self.train, self.valid)

    def held(self, part: Part, users: NDArray[np.integer] | None = None) -> Held:
        """What these users (all, where None) are judged on; does not depend on who else is asked for."""
        if users is None:
            users = np.arange(self.data.n_users)
        targets = self.valid if part == "valid" else self.test
        masked = self._trained_or_valid if part == "test" and self.protocol.mask_valid else self._trained
        drawn = None
        if self.protocol.candidates:
            streams = keyed.streams(keyed.stream(self.seed, "candidates", part), self.user_keys[users])
            drawn = candidates.draw(streams, self.observed.take(users), self.data.n_items, self.protocol.candidates)
        numbers = self.numbers if self.protocol.metrics.published else None
        return Held(targets.take(users), masked.take(users), drawn, numbers)


def assemble(protocol: Protocol, data: Interactions, seed: int, part: Parts) -> Task:
    """The task that follows from the part of each interaction."""
    order = time_order(data)
    train, valid, test = (by_user(data, order[part[order] == which]) for which in (TRAIN, VALID, TEST))
    exclude = sort_lists(by_user(data, order) if protocol.negatives == "all" else train)
    if protocol.drop_unseen_targets:
        test = keep_items(test, np.bincount(train.values, minlength=data.n_items) > 0)
    return Task(protocol, data, seed, train, exclude, valid, test)


def by_user(data: Interactions, rows: Int64) -> Ragged:
    """The items of these rows, which are in the order of users, per user."""
    counts = np.bincount(data.users[rows], minlength=data.n_users)
    return Ragged(offsets(counts), data.items[rows].astype(np.int32))


def sort_lists(lists: Ragged) -> Ragged:
    """The same lists in ascending order; the very same object where they are so already."""
    inside = np.ones(len(lists.values), bool)
    inside[lists.start[:-1][lists.counts > 0]] = False  # the first of a list follows nothing
    if (np.diff(lists.values, prepend=np.int32(-1))[inside] > 0).all():
        return lists
    return Ragged(lists.start, lists.values[np.lexsort((lists.values, lists.owners))])


def union(left: Ragged, right: Ragged) -> Ragged:
    """Two lists a user as one, ascending."""
    owners = np.concatenate([left.owners, right.owners])
    values = np.concatenate([left.values, right.values])
    return Ragged(offsets(left.counts + right.counts), values[np.lexsort((values, owners))])


def keep_items(lists: Ragged, wanted: NDArray[np.bool_]) -> Ragged:
    """The lists without the items that are not wanted."""
    keep = wanted[lists.values]
    counts = np.bincount(lists.owners[keep], minlength=len(lists))
    return Ragged(offsets(counts), lists.values[keep])
