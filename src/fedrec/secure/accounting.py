"""What noise shares are worth: the zero-concentrated differential privacy of one secure sum.

Kairouz, Liu and Steinke 2021, "The Distributed Discrete Gaussian Mechanism for Federated Learning with Secure
Aggregation" (Theorem 1, Proposition 14): a sum of m independent discrete Gaussians of deviation s (in steps) over d
coordinates, for inputs that lie at most D apart in units of sqrt(m) s, is rho-zCDP with

    tau = 10 sum_{k=1}^{m-1} exp(-2 pi^2 s^2 k / (k + 1)),    rho = (D + tau sqrt(d))^2 / 2.

tau is what a sum of discrete Gaussians lacks to one: below 10^-37 from s = 3 on, even for a million participants.
Wrapping modulo 2^b, unmasking and decoding are functions of the sum and cost nothing. zCDP adds up over releases;
``dp-accounting`` turns it into epsilon (:func:`epsilon`).

Tighter: Gaussian accounting
----------------------------
Let S be the deviation of the sum in steps. For whole numbers x, round(x + N(0, S^2)) = x + round(N(0, S^2)) is
computed from a Gaussian release and as private as it. Its probabilities and those of the discrete Gaussian differ
little: with z = y / S, P[round(N) = y] is the density at y times the mean of exp(-s^2 / (2 S^2)) cosh(y s / S^2) over
s in +-1/2, so the logarithm of their ratio lies between -1 / (8 S^2) and z^2 / (8 S^2) (the norming sum of the discrete
Gaussian differs from 1 by less than tau). As the same paper shows, the logarithm of the ratio of a sum of shares and
one draw is at most tau. Over d coordinates and k releases the logarithms add up to at most

    eta = k d 2 tau + sum (1 + z^2) / (8 S^2)

and sum z^2 <= k d + 2 sqrt(k d u) + 2 u but for a probability of exp(-u) (z is sub-Gaussian). So k releases have

    epsilon = epsilon(Gaussian, exact, at delta') + 2 eta  at  delta = exp(eta) delta' + (1 + exp(epsilon)) exp(-u):

what is left out under the data of the one counts once, under those of the other exp(epsilon) times. See
:func:`near_gaussian`. Where releases are accounted for one by one, their eta are added up, which is a little more than
eta of all together.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Literal

from fedrec.errors import BadInput
from fedrec.secure.gaussian import epsilon_of
from fedrec.secure.layout import Layout
from fedrec.secure.noise import deviations

Adjacency = Literal["replace", "add-or-remove"]
"""Replace: one user's data become any other's, the number of users is known. Add-or-remove: they become nothing."""

Norm = float | Mapping[tuple[str, ...], float]
"""The largest L2 norm of one contribution: of all noised fields together, or of groups of them that have one noise."""

FAR = 70.0
"""u: what has a probability of exp(-70) < 10^-30 does not happen; what that costs is part of delta."""


def tail(deviation: float, summands: int) -> float:
    """tau, for shares of this deviation in steps."""
    if deviation < 0.5:
        raise BadInput(f"shares of {deviation:g} steps are too coarse for the bound; 0.5 is the least")
    exponents = (-2 * math.pi**2 * deviation**2 * k / (k + 1) for k in range(1, min(summands, 1000)))
    # the summands fall towards exp(-2 pi^2 s^2); beyond the first thousand each counts as the thousandth
    rest = max(0, summands - 1000) * math.exp(-2 * math.pi**2 * deviation**2 * 1000 / 1001)
    return 10 * (sum(map(math.exp, exponents)) + rest)


def spread(adjacency: Adjacency, nonnegative: bool = False) -> float:
    """How far apart two contributions of norm 1 can lie.

    Where no number is below zero (counts), two of them enclose at most a right angle: sqrt(2), not 2.
    """
    if adjacency == "add-or-remove":
        return 1.0
    return math.sqrt(2) if nonnegative else 2.0


def distance(
    layout: Layout,
    clip: Norm,
    *,
    stochastic: bool = False,
    adjacency: Adjacency = "replace",
    nonnegative: bool = False,
    alone: bool = False,
) -> float:
    """D: how far apart two contributions can lie, in deviations of the sum's noise.

    Rounding may move each number by half a step (a whole one where stochastic). A participant's numbers are rounded
    together, once with one contribution of a user and once with the other, and either may be moved. ``alone``: a
    participant has the part of one user and nothing else, so rounding adds to its norm and keeps the angle of counts.
    Fields without noise are not covered: see :func:`uncovered`.
    """
    noised = layout.noised
    if not noised:
        raise BadInput("no field of the secure sum has noise; there is no guarantee")
    if isinstance(clip, Mapping):
        deviation = {field.name: field.noise for field in noised}
        if set(deviation) != {name for group in clip for name in group}:
            raise BadInput(f"norms of {sorted(clip)} are not those of the noised fields {sorted(deviation)}")
        norm = math.sqrt(sum((size / min(deviation[name] for name in group)) ** 2 for group, size in clip.items()))
    else:
        norm = clip / min(field.noise for field in noised)
    moved = (
        math.sqrt(field.size) * layout.scales[field.name].step * (1.0 if stochastic else 0.5) / field.noise
        for field in noised
    )
    apart = spread(adjacency, nonnegative)
    return (norm + math.sqrt(sum(one**2 for one in moved)) * (1.0 if alone else 2.0 / apart)) * apart


def uncovered(layout: Layout) -> tuple[str, ...]:
    """Fields that are summed without noise: outside any guarantee."""
    return tuple(field.name for field in layout.fields if field.noise == 0)


def zcdp(
    layout: Layout,
    clip: Norm,
    summands: int,
    *,
    adjacency: Adjacency = "replace",
    nonnegative: bool = False,
    alone: bool = False,
) -> float:
    """rho of one secure sum in which at least ``summands`` honest shares are certain to be."""
    apart = distance(layout, clip, adjacency=adjacency, nonnegative=nonnegative, alone=alone)
    tau = tail(min(deviations(layout, summands).values()), summands)
    return (apart + tau * math.sqrt(sum(field.size for field in layout.noised))) ** 2 / 2


def slack(layout: Layout, summands: int) -> float:
    """eta: what a secure sum of this layout lacks to a Gaussian release."""
    eta = 0.0
    for name, share in deviations(layout, summands).items():
        numbers = layout.places[name].stop - layout.places[name].start
        squares = numbers + 2 * math.sqrt(numbers * FAR) + 2 * FAR
        eta += 2 * numbers * tail(share, summands) + (numbers + squares) / (8 * share**2 * summands)
    return eta


def near_gaussian(rho: float, eta: float, delta: float, fields: int = 1) -> float:
    """Epsilon at delta of releases that lack ``eta`` to Gaussian ones of rho in all, ``fields`` times noised.

    Infinite where epsilon is so large that what is left out would take up delta.
    """
    if eta > 1:
        return math.inf
    unlikely = fields * math.exp(-FAR) if eta else 0.0

    def at(lost: float) -> float:
        left = (delta - lost) * math.exp(-eta)
        return epsilon_of(1 / math.sqrt(2 * rho), left) + 2 * eta if left > 0 else math.inf

    allowed = at(2 * unlikely) + 1
    found = at(unlikely * (1 + math.exp(min(allowed, 700.0))))
    return found if found <= allowed else math.inf


def epsilon(rho: float, delta: float, releases: int = 1) -> float:
    """Epsilon at delta of so many releases of rho-zCDP."""
    from dp_accounting import SelfComposedDpEvent, ZCDpEvent, rdp

    accountant = rdp.RdpAccountant()
    accountant.compose(SelfComposedDpEvent(ZCDpEvent(rho), releases))
    return float(accountant.get_epsilon(delta))
