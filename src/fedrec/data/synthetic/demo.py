"""The world of a first run: small, with times and readable titles, and groups of taste."""

from __future__ import annotations

import numpy as np

from fedrec import keyed
from fedrec.data.interactions import Interactions

USERS, ITEMS, GROUPS = 120, 160, 8
PER_GENRE = ITEMS // GROUPS
START, SPAN = 1_704_067_200, 366 * 86_400  # the year 2024

ADJECTIVES = (
    "Quiet", "Golden", "Broken", "Distant", "Crimson", "Hidden", "Last", "Silver", "Burning", "Frozen",
    "Endless", "Little", "Savage", "Gentle", "Lost", "Midnight", "Paper", "Hollow", "Bright", "Wandering",
)  # fmt: skip
NOUNS = ("Planet", "Detective", "Wedding", "Haunting", "Frontier", "Heist", "Kingdom", "Orchestra")
"""One noun per genre, so that a list of recommendations shows at a glance whether it makes sense."""


def demo(seed: int = 0) -> Interactions:
    """120 users, 160 items in 8 genres, about 3,500 interactions over the year 2024.

    A user likes one genre much and a second one somewhat, and touches the rest at random; inside a genre some
    titles are more popular than others.
    """
    draw = keyed.numbers(seed, "demo")
    genre = np.arange(ITEMS) // PER_GENRE
    appeal = 1.0 / (1.0 + np.arange(ITEMS) % PER_GENRE) ** 0.5
    users, items, times = [], [], []
    for user in range(USERS):
        first = user % GROUPS
        second = (first + 1 + int(draw.integers(GROUPS - 1))) % GROUPS
        taste = np.full(GROUPS, 0.03)
        taste[first], taste[second] = 0.55, 0.27
        weight = taste[genre] * appeal
        count = int(draw.integers(20, 40))
        chosen = draw.choice(ITEMS, size=count, replace=False, p=weight / weight.sum())
        users.append(np.full(count, user, np.int32))
        items.append(chosen.astype(np.int32))
        times.append(np.sort(START + draw.integers(0, SPAN, size=count)))
    titles = [f"The {ADJECTIVES[i % PER_GENRE]} {NOUNS[i // PER_GENRE]}" for i in range(ITEMS)]
    return Interactions(
        name="demo",
        users=np.concatenate(users),
        items=np.concatenate(items),
        user_ids=np.array([f"u{user + 1:03d}" for user in range(USERS)], dtype=np.str_),
        item_ids=np.array([f"i{item + 1:03d}" for item in range(ITEMS)], dtype=np.str_),
        times=np.concatenate(times).astype(np.int64),
        titles=np.array(titles, dtype=object),
        notes=(f"synthetic world 'demo', seed {seed}",),
    )
