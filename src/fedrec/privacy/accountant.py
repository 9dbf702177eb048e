"""What clip and noise on single uploads are worth: epsilon at delta, for one user over a whole training.

Conventions
-----------
* Unit: a user, that is all that one client uploads in all rounds it takes part in. (A client that holds many
  users is protected as a whole, each of its users with it, where ``clip`` bounds its upload; where the method bounds
  what each user adds, and nothing is clipped, one user among those of a client is.)
* Neighbours: a client's whole update is *replaced* by any other. Two updates of norm at most S lie at most
  2 S apart, so the sensitivity is 2 * clip. (Add-or-remove would give clip; it does not fit the local model,
  where the server sees that the client takes part, nor noise that leaves together with its client.)
* Each client noises its own upload; the server is not trusted and knows who takes part, so sampling clients
  amplifies nothing, and the noise of others counts for nothing: the server sees each upload by itself, and one
  that weighs uploads takes the noise of those that count little down with them. Where the server sees sums only,
  :mod:`fedrec.privacy.summed` has the figures.
* Guarantees are for real numbers; floating-point noise is an approximation of it.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import inf, isinf, sqrt
from typing import Literal

from fedrec.core.settings import PrivacySettings
from fedrec.core.sums import Contribution
from fedrec.errors import BadInput
from fedrec.privacy.spending import UNBOUNDED, Spent, gaussian_release, laplace_release
from fedrec.secure.accounting import spread
from fedrec.secure.gaussian import epsilon_of, sigma_of

UNIT = "user"


@dataclass(frozen=True)
class Guarantee:
    """(epsilon, delta)-differential privacy of one unit; epsilon is infinite where there is none."""

    epsilon: float
    delta: float
    unit: str
    statement: str
    """One line for reports."""

    @property
    def holds(self) -> bool:
        return not isinf(self.epsilon)


@dataclass(frozen=True)
class Sensitivity:
    """How far apart two clipped updates can lie, in the norm that the noise is measured in."""

    value: float
    remark: str = ""


def local(
    settings: PrivacySettings,
    *,
    releases: int,
    coordinates: int,
    contribution: Contribution | None = None,
    unprotected: tuple[str, ...] = (),
) -> Guarantee:
    """The guarantee against a server that sees every upload of the client.

    ``releases`` is the number of uploads of one client: the largest count in the run's log, or all rounds where that
    is not known. ``coordinates`` is the number of protected numbers in one upload
    (:func:`fedrec.privacy.fields.coordinates`), ``contribution`` what the method itself bounds. ``unprotected`` names
    fields that leave as they are.
    """
    if releases < 1 or coordinates < 1:
        raise BadInput(
            f"nothing to account for: releases={releases}, coordinates={coordinates}; each must be at least 1"
        )
    tail = f"; not covered, sent as they are: {', '.join(unprotected)}" if unprotected else ""
    found = sensitivity(settings, coordinates, contribution)
    if isinstance(found, str):
        return Guarantee(inf, settings.delta, UNIT, found + tail)
    epsilon, delta = composed(settings.noise_kind, found.value, settings.noise, releases, settings.delta)
    return Guarantee(
        epsilon,
        delta,
        UNIT,
        f"local, user level: {_budget(epsilon, delta)} over {_rounds(releases)}, "
        f"each upload noised by its client{found.remark}{tail}",
    )


def local_release(
    settings: PrivacySettings, coordinates: int, contribution: Contribution | None = None
) -> tuple[Spent, str]:
    """What one upload costs its user, and why it is unbounded where it is."""
    found = sensitivity(settings, coordinates, contribution)
    if isinstance(found, str):
        return UNBOUNDED, found
    release = gaussian_release if settings.noise_kind == "gaussian" else laplace_release
    return release(found.value, settings.noise), ""


def local_noise(
    epsilon: float, delta: float, *, releases: int, clip: float, contribution: Contribution | None = None
) -> float:
    """The deviation of Gaussian noise with which so many uploads of one client stay within the budget."""
    asked = PrivacySettings(clip=clip, noise=1.0, noise_kind="gaussian", delta=delta)
    found = sensitivity(asked, 1, contribution)
    if isinstance(found, str):
        raise BadInput(f"no noise gives epsilon {epsilon:g}: {found}")
    return sigma_of(epsilon, delta) * found.value * sqrt(releases) * (1 + 1e-9)


def sensitivity(
    settings: PrivacySettings, coordinates: int, contribution: Contribution | None = None
) -> Sensitivity | str:
    """The sensitivity that the noise has to hide, or why there is no guarantee."""
    if settings.noise == 0:
        return "no noise, no guarantee"
    if settings.clip == 0 and contribution is not None and settings.noise_kind == "gaussian":
        return Sensitivity(contribution.norm * spread("replace", contribution.nonnegative))
    if settings.clip == 0:
        return "noise without a guarantee: nothing is clipped, so one client's update is unbounded"
    if settings.noise_kind == "gaussian":
        remark = "" if settings.clip_norm == "l2" else " (L1 clip, whose bound holds for the L2 norm too)"
        return Sensitivity(2 * settings.clip, remark)
    if settings.clip_norm == "l1":
        return Sensitivity(2 * settings.clip)
    # ||x||_1 <= sqrt(n) ||x||_2
    remark = f" (L2 clip under Laplace noise: L1 bound sqrt({coordinates:,}) times larger; clip_norm=l1 fits)"
    return Sensitivity(2 * settings.clip * sqrt(coordinates), remark)


def composed(
    kind: Literal["laplace", "gaussian"], sensitivity: float, scale: float, releases: int, delta: float
) -> tuple[float, float]:
    """Epsilon and delta of so many releases with this noise.

    Gaussian: exact, since k releases with sigma tell as much as one with sigma / sqrt(k). Laplace: the better
    of pure composition (k * sensitivity / b, delta 0) and Renyi composition. Mironov's Renyi divergence of
    the one-dimensional Laplace mechanism is convex in the shift and zero at zero, so spreading the L1
    sensitivity over many coordinates tells less: the one-dimensional value bounds the vector's.
    """
    from dp_accounting import LaplaceDpEvent, SelfComposedDpEvent, rdp

    if kind == "gaussian":
        return epsilon_of(scale / sensitivity / sqrt(releases), delta), delta
    pure = releases * sensitivity / scale
    if releases == 1:
        return pure, 0.0
    accountant = rdp.RdpAccountant()
    accountant.compose(SelfComposedDpEvent(LaplaceDpEvent(scale / sensitivity), releases))
    renyi = float(accountant.get_epsilon(delta))
    return (renyi, delta) if renyi < pure else (pure, 0.0)


def _budget(epsilon: float, delta: float) -> str:
    shown = f"{epsilon:.3g}" if epsilon < 1000 else f"{epsilon:,.0f}"
    return f"epsilon {shown}" + (f" at delta {delta:g}" if delta else " (pure)")


def _rounds(rounds: int) -> str:
    return "1 round" if rounds == 1 else f"{rounds} rounds"
