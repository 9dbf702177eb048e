"""A task: data under a protocol, ready to be trained on and evaluated."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from fedrec import keyed
from fedrec.data.interactions import TEST, TRAIN, VALID, Interactions
from fedrec.data.ragged import Int64, Ragged, offsets
from fedrec.errors import BadInput
from fedrec.evaluation import candidates
from fedrec.evaluation.held import Held
from fedrec.evaluation.rules import Rules
from fedrec.evaluation.splits import Parts, time_order

Part = Literal["valid", "test"]
PARTS: tuple[Part, ...] = ("valid", "test")


@dataclass(frozen=True)
class Task:
    """What each user learns from and is evaluated on. Made by :meth:`Protocol.prepare`."""

    protocol: Rules
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
    def newcomers(self) -> Int64:
        """Users that take no part in training and are served by their history alone; ``train`` has it."""
        if not self.protocol.whole_users:
            return np.zeros(0, np.int64)
        return np.flatnonzero(self.valid.counts + self.test.counts)

    @property
    def user_keys(self) -> keyed.U64:
        """``[users]`` for keyed randomness: depends on the user's own id only."""
        return self.data.user_keys

    @cached_property
    def observed(self) -> Ragged:
        """All items each user ever touched, sorted: never sampled as candidates."""
        return sort_lists(by_user(self.data, np.argsort(self.data.users, kind="stable")))

    @cached_property
    def known(self) -> Ragged:
        """Those, and what they rated too low to count as touched: none of them is recommended."""
        return self.observed if self.data.rated_low is None else union(self.observed, self.data.rated_low)

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
        """What these users (all, where None) are evaluated on; does not depend on who else is asked for."""
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


def assemble(protocol: Rules, data: Interactions, seed: int, part: Parts) -> Task:
    """The task that follows from the part of each interaction."""
    order = time_order(data)
    train, valid = (by_user(data, order[part[order] == which]) for which in (TRAIN, VALID))
    tested = order[part[order] == TEST]
    if protocol.drop_unseen_targets:  # items that nobody trains on
        tested = tested[np.isin(data.items[tested], train.values)]
    exclude = sort_lists(by_user(data, order) if protocol.negatives == "all" else train)
    return Task(protocol, data, seed, train, exclude, valid, by_user(data, tested))


def thinned(task: Task, share: float) -> Task:
    """The task with a keyed random share of each user's training items (at least one), their order kept.

    A smaller share keeps a subset of what a larger one keeps. Where training negatives come from outside the
    training items, what was dropped may be drawn, as if the user had never touched it.
    """
    if not 0 < share <= 1:
        raise BadInput(f"share {share} is not a share of the training data; give a number above 0 and at most 1")
    if share == 1:
        return task
    train, owners = task.train, task.train.owners
    streams = keyed.streams(keyed.stream(task.seed, "thinned"), task.user_keys)
    within = np.arange(len(owners)) - train.start[owners]
    words = keyed.mix(streams[owners] + (within.astype(np.uint64) + np.uint64(1)) * np.uint64(keyed.GOLDEN))
    wanted = np.maximum(np.round(share * train.counts), np.minimum(train.counts, 1)).astype(np.int64)
    order = np.lexsort((words, owners))
    rank = np.empty(len(owners), np.int64)
    rank[order] = within  # lists lie one after the other, so the position in a list is the rank there
    keep = rank < wanted[owners]
    kept = Ragged(offsets(wanted), train.values[keep])
    honest = task.protocol.negatives == "train"
    return replace(task, train=kept, exclude=sort_lists(kept) if honest else task.exclude)


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
