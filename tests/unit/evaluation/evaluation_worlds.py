"""Small synthetic data for the evaluation tests."""

from __future__ import annotations

import numpy as np

from fedrec.data.interactions import Interactions
from fedrec.data.ragged import Ragged, offsets


def ragged(*lists: list[int]) -> Ragged:
    return Ragged(
        offsets(np.array([len(x) for x in lists])),
        np.array([value for some in lists for value in some], np.int32),
    )


def make_data(
    n_users: int = 30,
    n_items: int = 60,
    per_user: int = 12,
    seed: int = 0,
    timed: bool = True,
    name: str = "toy",
) -> Interactions:
    numbers = np.random.default_rng(seed)
    counts = numbers.integers(3, per_user + 1, n_users)
    items = np.concatenate([numbers.choice(n_items, count, replace=False) for count in counts])
    users = np.repeat(np.arange(n_users), counts)
    times = np.concatenate([np.sort(numbers.integers(0, 9, count)) for count in counts]) if timed else None
    return Interactions(
        name,
        users.astype(np.int32),
        items.astype(np.int32),
        np.array([f"u{i}" for i in range(n_users)]),
        np.array([str(100 + i) for i in range(n_items)]),
        times=None if times is None else times.astype(np.int64),
    )
