"""A world whose right answer is known, for tests of learning.

Users and items come in groups. The items of a group stand in a hidden circle of ``b`` items; a user starts
somewhere on its group's circle and takes ``b - missing`` items in a row, one after another in time:

    circle of group g:   i0 i1 i2 i3 i4 i5 i6 i7        b = 8, missing = 2
    a user from i2:            t  t  t  t  v  T          t train, v valid, T test (leave-one-out by time)

**Right answer.** The items to recommend are those of the user's own group that it does not have yet: at test
time the test item and the ``missing`` ones, all other items behind them. So a method that has found the
groups puts the test item among the first ``missing + 1``: HR@k = 1 for k > missing, and NDCG@k, if it cannot
tell those few apart, is the mean of 1/log2(r + 1) over the ranks r = 1 .. missing + 1. A method that knows
the order as well gets 1. With the defaults: HR@10 = 1, NDCG@10 = 0.640.

**Popularity.** Every start on the circle occurs equally often, so every item is trained on by the same number
of users, is the validation item of as many and the test item of as many: item counts are constant, and
popularity gets chance, k / (number of candidates), under full ranking as among sampled candidates. With the
defaults: HR@10 = 10/104 = 0.096, and 0.1 among 99 sampled.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from fedrec import keyed
from fedrec.data.interactions import Interactions
from fedrec.errors import BadInput

START, STEP = 1_704_067_200, 3_600


@dataclass(frozen=True)
class PlantedAnswer:
    """What there is to find in a planted world."""

    group_of_user: NDArray[np.int32]  # [users]
    group_of_item: NDArray[np.int32]  # [items]
    place_of_item: NDArray[np.int32]  # [items], place on the group's circle
    missing: int
    per_user: int
    """Interactions of each user."""

    @property
    def candidates(self) -> int:
        """Items ranked at test time, full ranking: all but the trained ones and the validation item."""
        return len(self.group_of_item) - (self.per_user - 1)

    def popularity_hr(self, k: int) -> float:
        """HR@k of popularity, full ranking: chance."""
        return min(1.0, k / self.candidates)

    def perfect_hr(self, k: int) -> float:
        """HR@k of a method that knows the groups and nothing else (expected)."""
        return min(1.0, k / (self.missing + 1))

    def perfect_ndcg(self, k: int) -> float:
        """NDCG@k of a method that knows the groups and nothing else (expected)."""
        ranks = np.arange(1, min(k, self.missing + 1) + 1)
        return float((1.0 / np.log2(ranks + 1.0)).sum() / (self.missing + 1))

    def scores(self) -> NDArray[np.float32]:
        """The scores of that method: 1 for items of the user's own group, else 0. ``[users, items]``."""
        return np.equal.outer(self.group_of_user, self.group_of_item).astype(np.float32)


def planted(
    groups: int = 6, users_per_group: int = 20, items_per_group: int = 20, missing: int = 3, seed: int = 0
) -> Interactions:
    """The world described above; ``users_per_group`` must be a multiple of ``items_per_group``."""
    answer = planted_answer(groups, users_per_group, items_per_group, missing, seed)
    n_users, per_user = groups * users_per_group, answer.per_user
    at = np.full((groups, items_per_group), -1, np.int32)  # item at each place of each circle
    at[answer.group_of_item, answer.place_of_item] = np.arange(groups * items_per_group, dtype=np.int32)
    # the users of a group take the starts of its circle in turn, so that each occurs equally often
    order = np.argsort(answer.group_of_user, kind="stable")
    begin = np.empty(n_users, np.int64)
    begin[order] = np.tile(np.arange(users_per_group) % items_per_group, groups)
    place = (begin[:, None] + np.arange(per_user)[None, :]) % items_per_group  # [users, per_user]
    items = at[answer.group_of_user[:, None], place]
    times = START + STEP * np.arange(per_user, dtype=np.int64)
    titles = [f"group {g} place {p}" for g, p in zip(answer.group_of_item, answer.place_of_item, strict=True)]
    return Interactions(
        name="planted",
        users=np.repeat(np.arange(n_users, dtype=np.int32), per_user),
        items=items.reshape(-1).astype(np.int32),
        user_ids=np.array([str(user) for user in range(n_users)], dtype=np.str_),
        item_ids=np.array([str(item) for item in range(len(titles))], dtype=np.str_),
        times=np.tile(times, n_users),
        titles=np.array(titles, dtype=object),
        notes=(f"synthetic world 'planted', {groups} groups, seed {seed}",),
    )


def planted_answer(
    groups: int = 6, users_per_group: int = 20, items_per_group: int = 20, missing: int = 3, seed: int = 0
) -> PlantedAnswer:
    """The answer of :func:`planted` with the same arguments."""
    if groups < 2 or items_per_group < 1 or users_per_group < 1:
        raise BadInput("planted: needs at least 2 groups, and users and items in each")
    if users_per_group % items_per_group:
        raise BadInput(
            f"planted: users_per_group ({users_per_group}) must be a multiple of items_per_group "
            f"({items_per_group}), so that every item is equally popular"
        )
    if not 0 <= missing <= items_per_group - 3:
        raise BadInput(
            f"planted: missing must be 0 to {items_per_group - 3} with {items_per_group} items a group, not {missing}"
        )
    draw = keyed.numbers(seed, "planted")
    # shuffled, so that neither a user's nor an item's number gives its group away
    user_slot = draw.permutation(groups * users_per_group)
    item_slot = draw.permutation(groups * items_per_group)
    return PlantedAnswer(
        group_of_user=(user_slot // users_per_group).astype(np.int32),
        group_of_item=(item_slot // items_per_group).astype(np.int32),
        place_of_item=(item_slot % items_per_group).astype(np.int32),
        missing=missing,
        per_user=items_per_group - missing,
    )
