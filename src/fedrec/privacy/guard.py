"""What a participant of secure sums does for its own protection: its share of the noise, and no loss."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from math import sqrt

import numpy as np

from fedrec.core.fold import Float64
from fedrec.privacy.spending import Spent, secure_release
from fedrec.privacy.summed import Groups, SumNoise
from fedrec.secure.contribution import LOSS, Guard, Parts
from fedrec.secure.noise import noise_of_plan, noise_of_sum, noisy_summands
from fedrec.secure.plan import Plan
from fedrec.secure.randomness import Stream
from fedrec.secure.ring import Integers


class NoiseGuard(Guard):
    """Adds this participant's share of the noise that the plan's layout states; losses are not sent."""

    def __init__(self, colluding: float, stream: Callable[[], Stream] = Stream.system) -> None:
        self.colluding, self.stream = colluding, stream

    def bounded(self, parts: Parts) -> Parts:
        return without_loss(parts)

    def noise(self, plan: Plan) -> Integers | None:
        return noise_of_plan(plan, self.colluding, self.stream())


class SimulatedGuard(Guard):
    """For simulation: the noise of a whole sum in one draw, carried by the first of its participants."""

    def __init__(self, colluding: float, seed: int) -> None:
        self.colluding, self.seed = colluding, seed
        self._drawn: set[bytes] = set()
        self.survivors: dict[bytes, int] = {}
        """How many are in the sum of each plan, by the plan's digest."""

    def bounded(self, parts: Parts) -> Parts:
        return without_loss(parts)

    def noise(self, plan: Plan) -> Integers | None:
        if plan.digest in self._drawn:
            return None
        self._drawn.add(plan.digest)
        summands = noisy_summands(len(plan.members), plan.rules.least_survivors, self.colluding)
        stream = Stream.named(self.seed, "noise of a sum", plan.round, plan.cohort, plan.attempt)
        return noise_of_sum(plan.layout, summands, self.survivors[plan.digest], stream)


def release_of_plan(plan: Plan, norms: Groups, nonnegative: bool, colluding: float) -> Spent:
    """What the sum of a plan costs one user, whose part is bounded by ``norms``: what a ledger is charged."""
    summands = noisy_summands(len(plan.members), plan.rules.least_survivors, colluding)
    return secure_release(plan.layout, norms, summands, nonnegative=nonnegative)


def without_loss(parts: Parts) -> dict[str, Float64]:
    """The contribution with a loss of 0: nobody needs it, and noise would drown it."""
    return {name: np.zeros_like(part) if name == LOSS else part for name, part in parts.items()}


def noise_in_total(found: SumNoise, sizes: Mapping[Plan, int], colluding: float) -> dict[str, float]:
    """The deviation that the noise really has in the total of some cohorts: more than stated where more answered."""
    factor = sqrt(
        sum(
            size / noisy_summands(len(plan.members), plan.rules.least_survivors, colluding)
            for plan, size in sizes.items()
        )
    )
    return {name: one * factor for name, one in found.noise.items()}
