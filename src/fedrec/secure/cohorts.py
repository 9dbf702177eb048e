"""Many participants: cohorts of some hundred, a secure sum in each, sums of sums above them.

The server sees the sum of each cohort, so what a sum must hide (least number of contributions, noise) has to hold in
the smallest cohort; :attr:`Cohorts.smallest` is the number for the accountant. Cohorts may be as large as a plan
allows (a million): neighbours grow with the logarithm of the cohort only, but its list of members goes to all.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from fedrec import keyed
from fedrec.errors import BadInput
from fedrec.secure.aggregator import SecureSum
from fedrec.secure.layout import Layout
from fedrec.secure.ring import Integers

SIZE = 1000


@dataclass(frozen=True)
class Cohorts:
    """Who is with whom in one round."""

    groups: tuple[tuple[str, ...], ...]
    """Names, ascending in each cohort."""

    @property
    def smallest(self) -> int:
        return min(map(len, self.groups))

    @property
    def largest(self) -> int:
        return max(map(len, self.groups))


def assign(
    names: Sequence[str], seed: int, run: str, round: int, size: int = SIZE, idle: Collection[str] = ()
) -> Cohorts:
    """Participants in cohorts of ``size`` to below twice that, as equal as can be; one where there are fewer.

    Who is with whom depends on the seed, the run, the round and the names alone, not on their order. Those of the
    ``idle``, who add nothing and hide nobody, have cohorts of their own, or fill up those of the others.
    """
    if size < 3:
        raise BadInput(f"cohorts of {size} hide nobody; take at least 3, better 100 to 1,000")
    if len(set(names)) < max(3, len(names)):
        raise BadInput(f"a secure sum needs at least 3 participants with different names, not {len(set(names))}")
    ordered = np.array(sorted(names), dtype=object)
    drawn = keyed.words(keyed.streams(keyed.stream(seed, "cohorts", run, round), keyed.keys_of(ordered)), 1)[:, 0]
    ordered = ordered[np.argsort(drawn, kind="stable")]
    without = np.isin(ordered, list(idle))
    adding, rest = ordered[~without], ordered[without]
    missing = max(0, size - len(adding))
    filled, rest = np.concatenate([adding, rest[:missing]]), rest[missing:]
    if len(rest) >= size:
        parts = _split(filled, len(filled) // size) + _split(rest, len(rest) // size)
    else:  # too few for a cohort: each one takes some of them, the smaller ones first
        count = len(ordered) // size
        both = zip(_split(filled, count), _split(rest, count)[::-1], strict=True)
        parts = [np.concatenate(pair) for pair in both]
    return Cohorts(tuple(tuple(sorted(part)) for part in parts))


def _split(ordered: NDArray[np.object_], count: int) -> list[NDArray[np.object_]]:
    return np.array_split(ordered, max(1, count))


@dataclass(frozen=True)
class Total:
    """The sum over cohorts."""

    total: Integers
    contributions: int
    smallest: int
    """Contributions in the smallest cohort that was added."""
    layout: Layout

    @property
    def fields(self) -> dict[str, np.ndarray]:
        """The sum in the fields' own units."""
        return self.layout.decode(self.total)


def sum_of_sums(sums: Iterable[SecureSum]) -> Total:
    """Add the cohorts of one run and round; the same cohort twice, or sums of different layouts, are an error."""
    rest = iter(sums)
    first = next(rest, None)
    if first is None:
        raise BadInput("there is no sum to add")
    total, seen, smallest = first.total, set(first.survivors), len(first.survivors)
    for part in rest:
        if (part.plan.run, part.plan.round) != (first.plan.run, first.plan.round):
            raise BadInput("sums of different runs or rounds do not add up")
        if part.plan.layout != first.plan.layout:
            raise BadInput("sums of cohorts with different layouts do not add up; use one layout for the round")
        added = total + part.total
        if ((total ^ added) & (part.total ^ added) < 0).any():  # two numbers of one sign whose sum has the other
            raise BadInput("the sum of these cohorts passes 64 bits; make the layout for all summands together")
        if seen & set(part.survivors):
            raise BadInput("a participant is in two cohorts of one round")
        total, smallest = added, min(smallest, len(part.survivors))
        seen |= set(part.survivors)
    return Total(total, len(seen), smallest, first.plan.layout)
