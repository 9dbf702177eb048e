"""What clip and noise are worth: epsilon at delta, for one user over a whole training.

Conventions
-----------
* Unit: a user, that is all that one client uploads in all rounds it takes part in. (A client that holds many
  users is protected as a whole, each of its users with it.)
* Neighbours: a client's whole update is *replaced* by any other. Two updates of norm at most S lie at most
  2 S apart, so the sensitivity is 2 * clip. (Add-or-remove would give clip; it does not fit the local model,
  where the server sees that the client takes part, nor noise that leaves together with its client.)
* Local guarantee: each client noises its own upload; the server is not trusted and knows who takes part, so
  sampling clients amplifies nothing.
* Central guarantee: only where the server needs a sum and sees nothing else (secure aggregation); then the
  noise of all n honest clients hides each of them.
* Guarantees are for real numbers; floating-point noise is an approximation of it.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import inf, isinf, sqrt
from typing import Literal

from fedrec.core.settings import PrivacySettings
from fedrec.errors import BadInput

Sampling = Literal["known", "fixed", "poisson"]

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
class Account:
    """What a training guarantees each user."""

    local: Guarantee
    """Against the server, from the client's own noise."""
    central: Guarantee | None = None
    """Against those who see only sums; None where the server needs single uploads."""


@dataclass(frozen=True)
class Sensitivity:
    """How far apart two clipped updates can lie, in the norm that the noise is measured in."""

    value: float
    remark: str = ""


def account(
    settings: PrivacySettings,
    *,
    rounds: int,
    coordinates: int,
    sum_suffices: bool = False,
    clients: int = 1,
    population: int | None = None,
    sampling: Sampling = "known",
    unprotected: tuple[str, ...] = (),
) -> Account:
    """Both guarantees of a training.

    ``rounds`` is the number of rounds one client takes part in: the largest count in the run's log, or all
    rounds where that is not known. ``coordinates`` is the number of protected numbers in one upload
    (:func:`fedrec.privacy.fields.coordinates`). ``clients`` is the smallest number of uploads in a round's
    sum, ``population`` the number they are drawn from. ``unprotected`` names fields that leave as they are.
    """
    if rounds < 1 or coordinates < 1 or clients < 1:
        raise BadInput(
            f"nothing to account for: rounds={rounds}, coordinates={coordinates}, clients={clients}; "
            "each must be at least 1"
        )
    tail = f"; not covered, sent as they are: {', '.join(unprotected)}" if unprotected else ""
    near = local(settings, rounds=rounds, coordinates=coordinates, tail=tail)
    if not sum_suffices:
        return Account(near)
    far = central(
        settings,
        rounds=rounds,
        coordinates=coordinates,
        clients=clients,
        population=population,
        sampling=sampling,
        tail=tail,
    )
    return Account(near, far)


def local(settings: PrivacySettings, *, rounds: int, coordinates: int, tail: str = "") -> Guarantee:
    """The guarantee against a server that sees every upload of the client."""
    found = sensitivity(settings, coordinates)
    if isinstance(found, str):
        return Guarantee(inf, settings.delta, UNIT, found + tail)
    epsilon, delta = composed(settings.noise_kind, found.value, settings.noise, rounds, settings.delta)
    return Guarantee(
        epsilon,
        delta,
        UNIT,
        f"local, user level: {_budget(epsilon, delta)} over {_rounds(rounds)}, "
        f"each upload noised by its client{found.remark}{tail}",
    )


def central(
    settings: PrivacySettings,
    *,
    rounds: int,
    coordinates: int,
    clients: int,
    population: int | None = None,
    sampling: Sampling = "known",
    tail: str = "",
) -> Guarantee:
    """The guarantee against those who see only the sum of ``clients`` uploads each round.

    ``sampling``: ``known`` (the observer knows who takes part) amplifies nothing and counts the ``rounds``
    of one client. ``fixed`` (a secret cohort of fixed size out of ``population``) amplifies; ``rounds`` must
    then be all rounds. ``poisson`` amplifies nothing here: the noise leaves with its client, so a round with
    the client and one without differ in noise as well, which the usual bound does not cover.
    """
    found = sensitivity(settings, coordinates)
    if isinstance(found, str):
        return Guarantee(inf, settings.delta, UNIT, found + tail)
    if settings.noise_kind == "laplace":
        epsilon, delta = composed("laplace", found.value, settings.noise, rounds, settings.delta)
        how = "the client's own noise alone is counted, since a sum of Laplace noises is not Laplace"
    else:
        # n independent Normal(0, sigma^2) add up to Normal(0, n sigma^2)
        summed = settings.noise * sqrt(clients)
        epsilon, delta = composed("gaussian", found.value, summed, rounds, settings.delta)
        how = f"the noises of {clients:,} clients added up, no amplification by sampling"
        if sampling == "fixed" and population is not None and population > clients:
            sampled = _sampled_gaussian(summed / found.value, clients, population, rounds, delta)
            if sampled < epsilon:  # the bound for samples is loose where nearly everybody takes part
                epsilon, how = sampled, f"a secret cohort of {clients:,} out of {population:,} each round"
    return Guarantee(
        epsilon,
        delta,
        UNIT,
        f"central, user level: {_budget(epsilon, delta)} over {_rounds(rounds)}, if only sums are seen "
        f"(secure aggregation, all clients honest): {how}{found.remark}{tail}",
    )


def sensitivity(settings: PrivacySettings, coordinates: int) -> Sensitivity | str:
    """The sensitivity that the noise has to hide, or why there is no guarantee."""
    if settings.noise == 0:
        return "no noise, no guarantee"
    if settings.clip == 0:
        return "noise without a guarantee: nothing is clipped, so one client's update is unbounded"
    if settings.noise_kind == "gaussian":
        remark = "" if settings.clip_norm == "l2" else " (L1 clip: its bound holds for the L2 norm too)"
        return Sensitivity(2 * settings.clip, remark)
    if settings.clip_norm == "l1":
        return Sensitivity(2 * settings.clip)
    # ||x||_1 <= sqrt(n) ||x||_2
    remark = f" (L2 clip under Laplace noise: L1 bound sqrt({coordinates:,}) times larger; clip_norm=l1 fits)"
    return Sensitivity(2 * settings.clip * sqrt(coordinates), remark)


def composed(
    kind: Literal["laplace", "gaussian"], sensitivity: float, scale: float, rounds: int, delta: float
) -> tuple[float, float]:
    """Epsilon and delta of ``rounds`` releases with this noise.

    Gaussian: exact, since k releases with sigma tell as much as one with sigma / sqrt(k). Laplace: the better
    of pure composition (k * sensitivity / b, delta 0) and Renyi composition. Mironov's Renyi divergence of
    the one-dimensional Laplace mechanism is convex in the shift and zero at zero, so spreading the L1
    sensitivity over many coordinates tells less: the one-dimensional value bounds the vector's.
    """
    from dp_accounting import LaplaceDpEvent, SelfComposedDpEvent, rdp
    from dp_accounting.gaussian_mechanism import get_epsilon_gaussian

    if kind == "gaussian":
        return float(get_epsilon_gaussian(scale / sensitivity / sqrt(rounds), delta)), delta
    pure = rounds * sensitivity / scale
    if rounds == 1:
        return pure, 0.0
    accountant = rdp.RdpAccountant()
    accountant.compose(SelfComposedDpEvent(LaplaceDpEvent(scale / sensitivity), rounds))
    renyi = float(accountant.get_epsilon(delta))
    return (renyi, delta) if renyi < pure else (pure, 0.0)


def _sampled_gaussian(multiplier: float, clients: int, population: int, rounds: int, delta: float) -> float:
    """Epsilon of Gaussian releases from fixed-size samples without replacement, neighbours by replacement."""
    from dp_accounting import (
        GaussianDpEvent,
        NeighboringRelation,
        SampledWithoutReplacementDpEvent,
        SelfComposedDpEvent,
        rdp,
    )

    accountant = rdp.RdpAccountant(neighboring_relation=NeighboringRelation.REPLACE_ONE)
    event = SampledWithoutReplacementDpEvent(population, clients, GaussianDpEvent(multiplier))
    accountant.compose(SelfComposedDpEvent(event, rounds))
    return float(accountant.get_epsilon(delta))


def _budget(epsilon: float, delta: float) -> str:
    shown = f"{epsilon:.3g}" if epsilon < 1000 else f"{epsilon:,.0f}"
    return f"epsilon {shown}" + (f" at delta {delta:g}" if delta else " (pure)")


def _rounds(rounds: int) -> str:
    return "1 round" if rounds == 1 else f"{rounds} rounds"
