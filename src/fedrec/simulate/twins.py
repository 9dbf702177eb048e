"""Participants that have the very same data as the one before: copies of a population (``--copies``).

Where what a client adds follows from its history and its download alone, they add the same numbers, which are computed
once. Noise is drawn as ever.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import Any

import numpy as np

from fedrec.core.messages import Axis, fields_of
from fedrec.data.ragged import Int64
from fedrec.simulate.runtime import Simulator, Tally

Parts = tuple[str, dict[str, Any]]


def with_twins(
    sim: Simulator, groups: list[Int64], names: list[str], done: Tally, parts: Callable[[Int64], Iterator[Parts]]
) -> Iterator[Parts]:
    """The parts of each group of clients, one group a participant; those of a twin are not computed again."""
    before: tuple[Int64, dict[str, Any], Tally] | None = None
    for name, group in zip(names, groups, strict=True):
        if before is None or not same_data(sim, before[0], group):
            start = replace(done)
            (_, found) = next(parts(group))
            cost = Tally(upload=done.upload - start.upload, download=done.download - start.download, weight=len(group))
            before = group, found, cost
        else:
            done.upload += before[2].upload
            done.download += before[2].download
            done.weight += before[2].weight
        yield name, before[1]


def same_data(sim: Simulator, one: Int64, other: Int64) -> bool:
    """Whether some clients have the histories and downloads of others, in the same order."""
    if len(one) != len(other):
        return False
    left, right = (sim.people.block.take(clients) for clients in (one, other))
    same = np.array_equal(left.user_start, right.user_start) and np.array_equal(left.train.start, right.train.start)
    if not (same and np.array_equal(left.train.values, right.train.values)):
        return False
    sent = (sim.method.download(sim.server, block.clients) for block in (left, right))
    return all(
        axis is Axis.SHARED or (isinstance(mine, np.ndarray) and np.array_equal(mine, theirs))
        for (_, axis, mine), (_, _, theirs) in zip(*map(fields_of, sent), strict=True)
    )
