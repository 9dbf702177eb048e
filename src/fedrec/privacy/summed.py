"""Noise for sums: from a budget for the whole run to the noise of each sum, and what one sum then costs.

Unit: a user. What one user adds to a sum is bounded by the method itself (``Method.contribution``) or by ``clip`` times
the largest weight that a user can have; weights are noised too, as sums of their own. The noise is
split among participants such that the fewest who can be in a sum give all of it (:mod:`fedrec.secure.noise`).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass, replace
from math import isinf, prod, sqrt

import numpy as np

from fedrec.core.participation import Participation
from fedrec.core.settings import PrivacySettings
from fedrec.core.sums import Contribution, SumField
from fedrec.errors import BadInput
from fedrec.keyed import U64
from fedrec.privacy.spending import NOTHING, Spent, secure_release
from fedrec.secure.accounting import spread
from fedrec.secure.gaussian import sigma_of
from fedrec.secure.layout import Layout
from fedrec.secure.ring import Bits

WEIGHTS_SHARE = 0.1
"""Part of rho that goes to sums of weights, where a method has such."""

ROUNDING = {"float16": 2.0**-11, "float32": 2.0**-24, "float64": 0.0}
"""By how much the wire's number format moves a number, as a share of it."""
LEAST_MOVED = {"float16": 2.0**-25, "float32": 0.0, "float64": 0.0}
"""By how much it moves numbers that are too small for that."""
WORTH = 1.02
"""So much more noise is accepted for words of half the length."""

Groups = Mapping[tuple[str, ...], float]
LayoutFor = Callable[[Mapping[str, float], Bits], Layout]


@dataclass(frozen=True)
class Budget:
    """What a whole run may cost each user."""

    epsilon: float
    delta: float

    def __post_init__(self) -> None:
        if not (0 < self.epsilon < float("inf") and 0 < self.delta < 1):
            raise BadInput(f"a budget of epsilon {self.epsilon} at delta {self.delta} cannot be kept; both are above 0")


@dataclass(frozen=True)
class SumNoise:
    """The noise of a run's sums."""

    budget: Budget
    releases: int
    """The most sums that one user's data enter."""
    summands: int
    """m: the fewest honest participants in a sum."""
    noise: Mapping[str, float]
    """Deviation in each number of a sum, by field."""
    norms: Groups
    """Largest norm of what one user adds, by fields that are bounded together."""
    nonnegative: bool
    alone: bool
    """Whether each participant has one user's part and nothing else."""
    bits: Bits
    release: Spent
    """What one sum costs a user."""

    @property
    def spent(self) -> Spent:
        """What the whole run costs a user."""
        return self.release.times(self.releases)


def norms_of(
    fields: Mapping[str, SumField], settings: PrivacySettings, contribution: Contribution | None, *, users: int
) -> tuple[Groups, bool]:
    """The largest norm of one user's part, and whether it has no number below zero.

    ``users`` is the most that one client has. The upload of a client is rounded as a whole: where the method bounds
    each user's part, it moves by a share of what all of the client's users add, once with a user and once without.
    """
    if settings.compress != "none":
        raise BadInput(
            f"compress={settings.compress} can move an upload beyond the clip; leave it out where sums have noise"
        )
    inside = tuple(name for name, one in fields.items() if one.protected)
    moved, coordinates = ROUNDING[settings.precision], sum(prod(fields[name].shape) for name in inside)
    least = LEAST_MOVED[settings.precision] * sqrt(coordinates)
    if contribution is not None:
        nonnegative = contribution.nonnegative
        both = 1.0 if users == 1 else 2.0 / spread("replace", nonnegative)
        largest = contribution.norm * (1 + both * users * moved) + both * least
    elif settings.clip > 0:
        largest, nonnegative = settings.clip * (1 + moved) + least, False
        largest *= max((fields[name].weight for name in inside), default=1.0)
    else:
        raise BadInput("nothing is clipped, so no noise hides one user; give a clip, such as --set clip=1")
    found: dict[tuple[str, ...], float] = {inside: largest} if inside else {}
    for name, one in fields.items():
        if not one.protected:
            if one.bound is None:
                raise BadInput(f"the sum {name!r} has no bound, so no noise hides one user in it")
            found[(name,)] = one.bound * sqrt(prod(one.shape))
            nonnegative = False
    return found, nonnegative


def sum_noise(
    budget: Budget,
    fields: Mapping[str, SumField],
    settings: PrivacySettings,
    contribution: Contribution | None,
    layout: LayoutFor,
    *,
    users: int,
    releases: int,
    summands: int,
    nodes: bool = False,
) -> SumNoise:
    """The least noise with which ``releases`` sums stay within the budget; ``users`` is the most that one client has.

    ``nodes``: participants add up several clients before they round.
    ``layout`` makes the layout for given noise and bits: its fixed-point step is part of what is accounted for. Words
    of 32 bits are taken where they cost hardly any noise.
    """
    if settings.noise > 0:
        raise BadInput("--epsilon chooses the noise of the run; leave --set noise out")
    norms, nonnegative = norms_of(fields, settings, contribution, users=users)
    start = SumNoise(budget, releases, summands, {}, norms, nonnegative, users == 1 and not nodes, 64, NOTHING)
    outside = [group for group in norms if not fields[group[0]].protected]
    found = _least(start, outside, layout)
    with suppress(BadInput):
        short = _least(replace(start, bits=32), outside, layout)
        if all(one <= WORTH * found.noise[name] for name, one in short.noise.items()):
            return short
    return found


def _least(start: SumNoise, outside: list[tuple[str, ...]], layout: LayoutFor) -> SumNoise:
    """The least noise with words of these bits; ``outside`` are the sums of weights."""
    budget, norms = start.budget, start.norms
    noise = _gaussian(budget, start.releases, norms, start.nonnegative, outside)
    for _ in range(200):
        release = secure_release(
            layout(noise, start.bits), norms, start.summands, nonnegative=start.nonnegative, alone=start.alone
        )
        found = replace(start, noise=noise, release=release)
        reached = found.spent.epsilon(budget.delta)
        if reached <= budget.epsilon:
            return found
        if isinf(reached):
            break
        # what fixed point and discrete noise cost beside the Gaussian: mostly parts of a thousand
        noise = {name: one * max(1.0002, min(1.2, reached / budget.epsilon)) for name, one in noise.items()}
    raise BadInput(f"no noise keeps {start.releases} sums within epsilon {budget.epsilon:g} at delta {budget.delta:g}")


def _gaussian(
    budget: Budget, releases: int, norms: Groups, nonnegative: bool, outside: list[tuple[str, ...]]
) -> dict[str, float]:
    whole = sigma_of(budget.epsilon, budget.delta) * sqrt(releases) * spread("replace", nonnegative)
    part = dict.fromkeys(norms, 1 - WEIGHTS_SHARE * bool(outside)) | {
        group: WEIGHTS_SHARE / len(outside) for group in outside
    }
    return {name: whole * one / sqrt(part[group]) for group, one in norms.items() for name in group}


def about_the_noise(
    budget: Budget,
    fields: Mapping[str, SumField],
    settings: PrivacySettings,
    contribution: Contribution | None,
    *,
    users: int,
    releases: int,
) -> dict[str, float]:
    """What :func:`sum_noise` comes to where nothing is rounded: within some parts of a thousand."""
    norms, nonnegative = norms_of(fields, settings, contribution, users=users)
    return _gaussian(budget, releases, norms, nonnegative, [group for group in norms if not fields[group[0]].protected])


def most_rounds(participation: Participation, seed: int, rounds: int, keys: U64) -> int:
    """The most rounds that one client takes part in: the choice is keyed, so it is known beforehand."""
    if participation.share == 1:
        return rounds
    counts = np.zeros(len(keys), np.int64)
    for number in range(1, rounds + 1):
        counts[participation.choose(seed, number, keys)] += 1
    return max(1, int(counts.max()))
