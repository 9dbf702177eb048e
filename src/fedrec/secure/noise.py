"""Noise before masking: every participant adds its share, so that the sum has at least the noise that is stated.

The noise is discrete Gaussian (Canonne, Kamath and Steinke 2020, "The Discrete Gaussian for Differential Privacy"):
P[X = x] proportional to exp(-x^2 / (2 sigma^2)) over the whole numbers, in steps of the ring. Whole numbers have no
low-order float digits to give anything away, and the sum of shares is as good as one draw (:mod:`.accounting`).

Shares: if the sum is to carry deviation sigma and at least m honest participants are certain to be in it, each draws
variance sigma^2 / m. The server cannot have a sum with fewer: participants refuse lists of survivors below the plan's
minimum; what colluding ones added is known to them and does not count, so m is that minimum less the colluding ones.
With everybody there the sum carries more than stated, by n / m.
"""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np

from fedrec.errors import BadInput
from fedrec.secure.layout import Layout
from fedrec.secure.lazy import LARGEST, MARGIN, Uniform, heads
from fedrec.secure.plan import Plan
from fedrec.secure.randomness import U64, Stream
from fedrec.secure.ring import Integers
from fedrec.secure.rules import colluding_members

LEAST_DEVIATION = 2.0
"""In steps: below it a sum of discrete Gaussians is not nearly one."""
MOST_DEVIATION = 2.0**40


def noisy_summands(members: int, least_survivors: int, colluding: float) -> int:
    """m: the fewest honest contributions in a sum that members allow."""
    least = least_survivors - colluding_members(members, colluding)
    if least < 1:
        raise BadInput(f"of {least_survivors} survivors so many may collude that nobody's noise is certain")
    return least


def deviations(layout: Layout, summands: int) -> dict[str, float]:
    """For each field that has noise the deviation of one participant's share, in steps."""
    found = {}
    for field in layout.noised:
        share = math.ldexp(field.noise / math.sqrt(summands), layout.scales[field.name].exponent)
        if share < LEAST_DEVIATION:
            raise BadInput(
                f"the noise of field {field.name!r} is {share:.2g} steps per participant, too coarse; take 64 bits"
            )
        if share > MOST_DEVIATION:
            raise BadInput(f"the noise of field {field.name!r} is {share:.2g} steps per participant; take 32 bits")
        found[field.name] = share
    return found


def noise_share(layout: Layout, summands: int, stream: Stream, shares: int = 1) -> Integers:
    """One participant's noise for all fields ``[length]``; ``stream`` is ``Stream.system()`` when deployed.

    For simulation, that of ``shares`` participants in one draw: a sum of discrete Gaussians of at least 2 steps each is
    one of the summed variance but for some 10^-16 of its probabilities (:func:`fedrec.secure.accounting.tail`), 10^-37
    from 3 steps on.
    """
    vector = np.zeros(layout.length, np.int64)
    for name, deviation in deviations(layout, summands).items():
        part = vector[layout.places[name]]
        part[:] = discrete_gaussian(deviation * math.sqrt(shares), len(part), stream)
    return vector


def summands_of(plan: Plan, colluding: float) -> int:
    """m of a plan."""
    return noisy_summands(len(plan.members), plan.rules.least_survivors, colluding)


def discrete_gaussian(sigma: float, count: int, stream: Stream, margin: float = MARGIN) -> Integers:
    """Exact draws, vectorised: Algorithm 3 of Canonne, Kamath and Steinke with the coins of :mod:`.lazy`.

    A proposal is discrete Laplace of scale t = floor(sigma) + 1: U + t V with sign, where U in 0 .. t - 1 is kept with
    probability exp(-U / t), P[V >= j] = exp(-j), and -0 is thrown away. Y is accepted with probability
    exp(-(|Y| - sigma^2 / t)^2 / (2 sigma^2)).
    """
    if not 0 < sigma <= MOST_DEVIATION:
        raise BadInput(f"discrete Gaussian noise of deviation {sigma} steps cannot be drawn")
    t = math.floor(sigma) + 1
    found: list[Integers] = []
    missing = count
    while missing > 0:
        drawn = _proposals(sigma, t, int(2.3 * missing) + 32, stream, margin)
        found.append(drawn[:missing])
        missing -= len(found[-1])
    return np.concatenate(found) if found else np.zeros(0, np.int64)


def _proposals(sigma: float, t: int, count: int, stream: Stream, margin: float) -> Integers:
    """The proposals that were accepted, out of ``count``."""
    variance = Fraction(sigma) ** 2
    low = stream.below(t, count)
    kept = heads(stream.words(count), low / t, lambda i: Fraction(int(low[i]), t), stream, margin)
    low = low[kept]
    size = low + t * _geometric(stream.words(len(low)), stream, margin)
    negative = (stream.words((len(low) + 63) // 64).view(np.uint8)[: (len(low) + 7) // 8]).astype(np.uint8)
    sign = np.unpackbits(negative)[: len(low)].astype(bool)
    real = ~(sign & (size == 0))
    size, sign = size[real], sign[real]
    distance = (size - float(variance / t)) / sigma
    accepted = heads(
        stream.words(len(size)),
        distance * distance / 2,
        lambda i: (int(size[i]) - variance / t) ** 2 / (2 * variance),
        stream,
        margin,
    )
    return np.asarray(np.where(sign, -size, size)[accepted])


_EDGES = np.exp(-np.arange(1.0, LARGEST + 1))[::-1]
"""exp(-45) .. exp(-1), ascending."""


def _geometric(words: U64, more: Stream, margin: float) -> Integers:
    """V with P[V >= j] = exp(-j): how many of exp(-1), exp(-2), ... are above one uniform number."""
    drawn = words.astype(np.float64) * 2.0**-64
    least = len(_EDGES) - np.searchsorted(_EDGES * (1 - margin), drawn + 2.0**-64, side="left")
    most = len(_EDGES) - np.searchsorted(_EDGES * (1 + margin), drawn, side="left")
    for index in np.flatnonzero((least < most) | (words == 0)):
        number, j = Uniform(int(words[index]), more), int(least[index])
        while number.below(Fraction(j + 1)):
            j += 1
        least[index] = j
    return least.astype(np.int64)
