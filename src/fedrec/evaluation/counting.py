"""Users with one held-out item each: what stands before it is counted as scores come, metrics are taken at the end."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from fedrec.data.ragged import Int32, Int64
from fedrec.evaluation.held import Float32, Held, require_finite
from fedrec.evaluation.metrics import Float64, MetricSet, of_counts
from fedrec.extras import installed
from fedrec.threads import over_rows

KernelPart = tuple[Int32, Int64, Int32, Int32]


def countable(parts: Sequence[Held]) -> bool:
    """Whether these parts (of the same users) can be counted: at most one item a user, and a compiler at hand."""
    same = len({len(held) for held in parts}) == 1 and 1 <= len(parts) <= 2
    return same and installed("numba") and all(len(held) == 0 or held.targets.counts.max() <= 1 for held in parts)


class Counting:
    """Positions of held-out items of one or two parts (validation, test), of as many users as have been scored."""

    def __init__(self, parts: Sequence[Held], metrics: MetricSet) -> None:
        for held in parts:
            if metrics.sampled and held.candidates is None:
                raise ValueError(f"{metrics.sampled[0].name} needs sampled candidates, but none were drawn")
        self.parts, self.metrics = tuple(parts), metrics
        self.users = len(parts[0])
        self._for_kernel = [_for_kernel(held) for held in parts]
        if len(parts) == 1:
            self._for_kernel.append(_nothing(self.users))
        self.begin()

    def begin(self) -> None:
        self.counts = np.zeros((self.users, 2, 4), np.int64)
        self.scored = np.zeros(self.users, bool)

    def add(self, who: Int64, scores: Float32) -> None:
        """Scores ``[users, n_items]`` of the users at these positions."""
        if len(scores) != len(who):
            raise ValueError(f"scores of {len(scores)} users, but {len(who)} are evaluated")
        from fedrec.evaluation.counting_kernel import count_parts

        scores, finite = np.ascontiguousarray(scores), np.empty(len(scores), bool)
        over_rows(count_parts, len(scores), (scores, who, *self._for_kernel, self.counts, finite))
        if not finite.all():
            require_finite(scores, who)
        self.scored[who] = True

    def values(self) -> list[dict[str, Float64]]:
        """The metrics of each user for each part: NaN for users without an item, and for those not scored."""
        return [self._of_part(place, held) for place, held in enumerate(self.parts)]

    def _of_part(self, place: int, held: Held) -> dict[str, Float64]:
        present = (held.targets.counts > 0) & self.scored
        greater, tied, greater_drawn, tied_drawn = self.counts[:, place].T
        found = of_counts(greater, tied, present, self.metrics.full)
        found |= of_counts(greater_drawn, tied_drawn, present, self.metrics.sampled)
        return {name: found[name] for name in self.metrics.names if name in found}


def _for_kernel(held: Held) -> KernelPart:
    items = np.full(len(held), -1, np.int32)
    items[held.targets.counts > 0] = held.targets.values
    drawn = np.zeros((len(held), 0), np.int32) if held.candidates is None else held.candidates
    return items, held.masked.start, held.masked.values, np.ascontiguousarray(drawn, np.int32)


def _nothing(users: int) -> KernelPart:
    nobody, start = np.full(users, -1, np.int32), np.zeros(users + 1, np.int64)
    return nobody, start, np.zeros(0, np.int32), np.zeros((users, 0), np.int32)
