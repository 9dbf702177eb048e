"""What releases cost together: zCDP that adds up, and epsilon at the end.

A Gaussian release whose inputs lie at most D deviations apart is D^2 / 2 zero-concentrated differentially private
(Bun and Steinke 2016). rho adds up over releases, rounds and runs. As long as all of them are Gaussian, their
composition is one Gaussian release of the summed rho, whose epsilon is known exactly; what sums of discrete Gaussians
lack to it is ``eta`` (:mod:`fedrec.secure.accounting`). A Laplace release of
``pure`` epsilon costs pure^2 / 2 of rho.
"""

from __future__ import annotations

from dataclasses import astuple, dataclass
from math import inf, isinf

from fedrec.secure.accounting import Adjacency, Norm, epsilon, near_gaussian, slack, zcdp
from fedrec.secure.layout import Layout


@dataclass(frozen=True)
class Spent:
    """What has been given away about one user."""

    rho: float = 0.0
    eta: float = 0.0
    """What it lacks to a Gaussian release; infinite where it is none."""
    pure: float = 0.0
    """Pure epsilon; infinite where only rho is bounded."""
    releases: int = 0

    def __add__(self, other: Spent) -> Spent:
        return Spent(self.rho + other.rho, self.eta + other.eta, self.pure + other.pure, self.releases + other.releases)

    def times(self, releases: int) -> Spent:
        """The same release so many times."""
        if not releases:
            return NOTHING
        return Spent(self.rho * releases, self.eta * releases, self.pure * releases, self.releases * releases)

    def beyond(self, other: Spent) -> Spent:
        """What is in this and not yet in another, part by part: together they are the larger of the two."""
        pairs = zip(astuple(self), astuple(other), strict=True)
        return Spent(*(own - others if own > others else 0 for own, others in pairs))  # infinite from infinite is 0

    def epsilon(self, delta: float) -> float:
        """Epsilon at delta: the best of pure, exact Gaussian and zCDP accounting."""
        if self.rho == 0:
            return 0.0
        if isinf(self.rho):
            return inf
        gaussian = near_gaussian(self.rho, self.eta, delta, self.releases) if self.eta <= 1 else inf
        return min(self.pure, gaussian, epsilon(self.rho, delta))


NOTHING = Spent()
UNBOUNDED = Spent(inf, inf, inf, 1)
"""A release without a guarantee."""


def gaussian_release(sensitivity: float, deviation: float) -> Spent:
    """One release of real numbers with Gaussian noise of this deviation in each."""
    return Spent((sensitivity / deviation) ** 2 / 2, 0.0, inf, 1)


def laplace_release(sensitivity: float, scale: float) -> Spent:
    """One release with Laplace noise, the sensitivity in L1."""
    return Spent((sensitivity / scale) ** 2 / 2, inf, sensitivity / scale, 1)


def secure_release(
    layout: Layout,
    norm: Norm,
    summands: int,
    *,
    adjacency: Adjacency = "replace",
    nonnegative: bool = False,
    alone: bool = False,
) -> Spent:
    """One secure sum with the noise of at least ``summands`` participants; ``norm`` bounds what one user adds.

    ``alone``: each participant has one user's part and nothing else (:func:`fedrec.secure.accounting.distance`).
    """
    rho = zcdp(layout, norm, summands, adjacency=adjacency, nonnegative=nonnegative, alone=alone)
    return Spent(rho, slack(layout, summands), inf, len(layout.noised))
