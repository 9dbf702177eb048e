"""A world of any size: long-tailed popularity, groups of taste, made without a loop over users."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from fedrec import keyed
from fedrec.data.interactions import Interactions
from fedrec.errors import BadInput

USERS_AT_ONCE = 50_000
"""Part of what the seed means: another number makes another world."""
LEAST = 5
"""Interactions that every user has, where the average allows it."""
OWN_GROUP = 0.7
"""Share of a user's draws that come from its group's items."""
START, SPAN = 1_640_995_200, 2 * 365 * 86_400
PATIENCE = 12
"""Rounds of drawing by popularity before the rest of a heavy user's items is drawn evenly."""


def scalable(
    users: int = 1_000,
    items: int = 500,
    interactions: int = 20_000,
    groups: int = 8,
    exponent: float = 1.0,
    seed: int = 0,
) -> Interactions:
    """Exactly this many users, items and interactions.

    The item of popularity rank r is drawn with weight r^-exponent; items and users belong to groups, and 7
    of 10 draws of a user come from its own group's items. Activity of users is log-normal. All items are in
    the catalogue, also those nobody has.
    """
    least, most = _check(users, items, interactions, groups, exponent)
    draw = keyed.numbers(seed, "scale")
    counts = _counts(users, interactions, least, most, draw)
    group_of_user = draw.integers(0, groups, size=users).astype(np.int32)
    # items sorted by group: a group's items are one stretch of the cumulated weights
    popular = draw.permutation(items)  # item of each popularity rank
    by_group = np.argsort(np.arange(items) % groups, kind="stable")
    item_at = popular[by_group].astype(np.int32)
    weight = (1.0 + by_group) ** -exponent
    upto = np.cumsum(weight)
    per_group = np.bincount(np.arange(items) % groups, minlength=groups)
    edge = np.concatenate([[0.0], upto[np.cumsum(per_group) - 1]])

    chosen, times = [], []
    for chunk, first in enumerate(range(0, users, USERS_AT_ONCE)):
        last = min(first + USERS_AT_ONCE, users)
        own = keyed.numbers(seed, "scale", "chunk", chunk)
        picked = _pick(counts[first:last], group_of_user[first:last], upto, edge, own)
        who = np.repeat(np.arange(last - first), counts[first:last])
        when = START + own.integers(0, SPAN, size=len(picked))
        order = np.lexsort((when, who))
        chosen.append(item_at[picked[order]])
        times.append(when[order])
    return Interactions(
        name=f"scale:users={users},items={items},interactions={interactions}",
        users=np.repeat(np.arange(users, dtype=np.int32), counts),
        items=np.concatenate(chosen),
        user_ids=np.arange(users).astype(np.str_),
        item_ids=np.arange(items).astype(np.str_),
        times=np.concatenate(times).astype(np.int64),
        notes=(f"synthetic world 'scale', {groups} groups, exponent {exponent}, seed {seed}",),
    )


def _check(users: int, items: int, interactions: int, groups: int, exponent: float) -> tuple[int, int]:
    if users < 1 or items < 2:
        raise BadInput(f"scale: needs at least 1 user and 2 items, not {users} and {items}")
    if not 1 <= groups <= items:
        raise BadInput(f"scale: groups must be 1 to the number of items ({items}), not {groups}")
    if not 0.0 <= exponent <= 3.0:
        raise BadInput(f"scale: exponent must be 0 to 3, not {exponent}")
    most = items // 2
    if not users <= interactions <= users * most:
        raise BadInput(
            f"scale: {interactions} interactions for {users} users and {items} items; use {users} to {users * most}"
        )
    return min(LEAST, interactions // users), most


def _counts(users: int, interactions: int, least: int, most: int, draw: np.random.Generator) -> NDArray[np.int64]:
    """Interactions of each user: log-normal above ``least``, at most ``most``, of the right sum."""
    activity = draw.lognormal(0.0, 1.0, size=users)
    spare = interactions - users * least
    counts = least + np.minimum(np.floor(activity / activity.sum() * spare), most - least).astype(np.int64)
    rest = interactions - int(counts.sum())
    while rest > 0:
        room = draw.permutation(np.flatnonzero(counts < most))[:rest]
        counts[room] += 1
        rest -= len(room)
    return np.asarray(counts)


def _pick(
    counts: NDArray[np.int64],
    group: NDArray[np.int32],
    upto: NDArray[np.float64],
    edge: NDArray[np.float64],
    draw: np.random.Generator,
) -> NDArray[np.int64]:
    """Distinct positions for each user, ``counts[u]`` of them, user after user."""
    n_items = len(upto)
    done: list[NDArray[np.int64]] = []
    pairs = np.zeros(0, np.int64)  # user * n_items + position, of users who lack some
    lacking = counts
    attempt = 0
    while lacking.any():
        who = np.repeat(np.arange(len(counts)), lacking)
        if attempt < PATIENCE:
            own = draw.random(len(who)) < OWN_GROUP
            low = np.where(own, edge[group[who]], 0.0)
            high = np.where(own, edge[group[who] + 1], edge[-1])
            drawn = np.searchsorted(upto, low + draw.random(len(who)) * (high - low), side="right")
            drawn = np.minimum(drawn, n_items - 1)
        else:
            drawn = draw.integers(0, n_items, size=len(who))
        pairs = np.sort(np.concatenate([pairs, who * n_items + drawn]))
        pairs = pairs[np.concatenate([[True], pairs[1:] != pairs[:-1]])]
        has = np.bincount(pairs // n_items, minlength=len(counts))
        lacking = np.where(has > 0, counts - has, 0)
        full = lacking[pairs // n_items] == 0
        done.append(pairs[full])
        pairs = pairs[~full]
        attempt += 1
    return np.asarray(np.sort(np.concatenate(done)) % n_items)
