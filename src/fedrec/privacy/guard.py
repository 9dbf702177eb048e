"""What a participant of secure sums does for its own protection: its share of the noise, and no loss."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from math import sqrt

import numpy as np

from fedrec.privacy.spending import Spent, secure_release
from fedrec.privacy.summed import Groups, SumNoise
from fedrec.secure.contribution import LOSS, Guard, Parts
from fedrec.secure.noise import noise_share, summands_of
from fedrec.secure.plan import Plan
from fedrec.secure.randomness import Stream
from fedrec.secure.ring import Integers


class NoiseGuard(Guard):
    """Adds this participant's share of the noise that the plan's layout states; losses are not sent.

    A loss of 0 goes instead: nobody needs it, and noise would drown it.
    """

    def __init__(self, colluding: float, stream: Callable[[], Stream] = Stream.system) -> None:
        self.colluding, self.stream = colluding, stream

    def bounded(self, parts: Parts) -> Parts:
        return {name: np.zeros_like(part) if name == LOSS else part for name, part in parts.items()}

    def noise(self, plan: Plan) -> Integers | None:
        return noise_share(plan.layout, summands_of(plan, self.colluding), self.stream())


class SimulatedGuard(NoiseGuard):
    """For simulation: the noise of a whole sum in one draw, carried by the first of its participants."""

    def __init__(self, colluding: float, seed: int) -> None:
        super().__init__(colluding)
        self.seed = seed
        self._drawn: set[bytes] = set()
        self.survivors: dict[bytes, int] = {}
        """How many are in the sum of each plan, by the plan's digest."""

    def noise(self, plan: Plan) -> Integers | None:
        if plan.digest in self._drawn:
            return None
        self._drawn.add(plan.digest)
        stream = Stream.named(self.seed, "noise of a sum", plan.round, plan.cohort, plan.attempt)
        return noise_share(plan.layout, summands_of(plan, self.colluding), stream, self.survivors[plan.digest])


def release_of_plan(plan: Plan, norms: Groups, nonnegative: bool, alone: bool, colluding: float) -> Spent:
    """What the sum of a plan costs one user, whose part is bounded by ``norms``: what a ledger is charged."""
    return secure_release(plan.layout, norms, summands_of(plan, colluding), nonnegative=nonnegative, alone=alone)


def noise_in_total(found: SumNoise, sizes: Mapping[Plan, int], colluding: float) -> dict[str, float]:
    """The deviation that the noise really has in the total of some cohorts: more than stated where more answered."""
    factor = sqrt(sum(size / summands_of(plan, colluding) for plan, size in sizes.items()))
    return {name: one * factor for name, one in found.noise.items()}
