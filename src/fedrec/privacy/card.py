"""The privacy card of a run: what is guaranteed to whom, in the words of NIST SP 800-226 and of OpenDP's registry."""

from __future__ import annotations

from dataclasses import asdict, dataclass, replace
from math import sqrt
from typing import Any

from fedrec.core.settings import PrivacySettings
from fedrec.core.sums import Contribution
from fedrec.privacy.accountant import local, local_release
from fedrec.privacy.summed import SumNoise
from fedrec.secure.accounting import spread

REPLACE = "replace: one user's data become any other's; the number of users, and who takes part, is public"
OUTSIDE = (
    "metric sums of the evaluation (of a node, or of a cohort with secure sums over a network), which carry no noise: "
    "a server that makes up a model can use them to ask what is in histories",
)
"""What leaves beside uploads and is never noised."""
SEED = (
    "anything, against those who have the run's files: the noise is drawn from the seed in them, so it can be repeated"
)
APART = (
    "users whose interactions several nodes host: each node's part of them counts as a user of its own, and nobody can "
    "see that they are one"
)
LOSSES = "mean training losses"
USER, WHOLE_CLIENT = "user", "user (all that one client holds)"
"""The unit where the method bounds each user's part, and where the clip bounds a client's upload as a whole."""


@dataclass(frozen=True)
class PrivacyCard:
    """One run's guarantee; ``epsilon`` is None where there is none."""

    unit: str
    adjacency: str
    epsilon: float | None
    delta: float | None
    rho: float | None
    """Zero-concentrated differential privacy of the whole run."""
    mechanism: str
    sensitivity: float | None
    """How far one user moves what is released, in L2 (L1 under Laplace noise)."""
    noise: dict[str, float]
    """Deviation (Laplace: scale) in each number that is released, by field."""
    accountant: str
    composition: str
    trust: str
    not_covered: tuple[str, ...]
    ledger: dict[str, Any] | None = None
    """What the participant that gave away most has in its own ledger, where one was kept here."""

    def as_dict(self) -> dict[str, Any]:
        return {**asdict(self), "not_covered": list(self.not_covered)}

    @property
    def line(self) -> str:
        """The guarantee in one line."""
        if self.epsilon is None:
            return self.mechanism
        pure = f"at delta {self.delta:g}" if self.delta else "(pure)"
        return f"epsilon {self.epsilon:.4g} {pure}, user level, {self.composition.split(' of ')[0]}; {self.trust}"

    def lines(self) -> list[str]:
        return card_lines(self.as_dict())


def card_lines(card: dict[str, Any]) -> list[str]:
    """A card out of a result, for a terminal; numbers as they are read."""
    if card["epsilon"] is None:
        budget = "none"
    else:
        rho = "" if card["rho"] is None else f" (zCDP rho {card['rho']:.4g})"
        budget = f"epsilon {card['epsilon']:.4g} at delta {card['delta']:g}{rho}"
    rows = [
        ("guarantee", budget),
        ("ledger", _ledger_line(card.get("ledger"))),
        ("unit", card["unit"]),
        ("adjacency", card["adjacency"]),
        ("mechanism", card["mechanism"]),
        ("composition", card["composition"]),
        ("accountant", card["accountant"]),
        ("trust", card["trust"]),
        ("not covered", "; ".join(card["not_covered"]) or "nothing"),
    ]
    return [f"  {name:<12} {text}" for name, text in rows if text]


def _ledger_line(stated: dict[str, Any] | None) -> str:
    if stated is None:
        return ""
    charges = "1 charge" if stated["charges"] == 1 else f"{stated['charges']} charges"
    spent = f"epsilon {stated['epsilon']:.4g} at delta {stated['delta']:g}"
    return f"{spent} in the ledger of {stated['participant']}, {charges}"


def collected() -> PrivacyCard:
    """A centralised reference."""
    return _none("all histories are collected in one place", "whoever holds them", ())


def nothing_sent() -> PrivacyCard:
    """A method that sends nothing."""
    return _none("nothing leaves a client but the evaluation's metrics", "nobody", OUTSIDE)


def unknown() -> PrivacyCard:
    """A run whose rounds ran in another process, which did not write down what uploads held."""
    why = "unknown: an older version ran the rounds and did not keep what uploads held, so nothing is guaranteed"
    return _none(why, "the server sees every upload", ("uploads, whatever they held", LOSSES, *OUTSIDE))


def of_uploads(
    settings: PrivacySettings,
    *,
    releases: int,
    coordinates: int,
    contribution: Contribution | None,
    unprotected: tuple[str, ...],
) -> PrivacyCard:
    """A run whose server sees each upload."""
    found = local(settings, releases=releases, coordinates=coordinates, contribution=contribution)
    outside = (*(f"the upload's {name}, sent as it is" for name in unprotected), LOSSES, *OUTSIDE)
    trust = "the server sees every upload; nobody is trusted beyond that"
    if not found.holds:
        return _none(found.statement, trust, outside)
    spent, _ = local_release(settings, coordinates, contribution)
    gaussian = settings.noise_kind == "gaussian"
    apart = settings.noise * (sqrt(2 * spent.rho) if gaussian else spent.pure)
    return PrivacyCard(
        unit=WHOLE_CLIENT
        if settings.clip
        else USER,  # without a clip, what the method bounds by itself: one user's part
        adjacency=REPLACE,
        epsilon=found.epsilon,
        delta=found.delta,
        rho=spent.times(releases).rho,
        mechanism=f"{settings.noise_kind.capitalize()} noise of scale {settings.noise:.4g} by each client on its own "
        "upload, in floating point",
        sensitivity=apart,
        noise={"upload": settings.noise},
        accountant=f"dp-accounting {_version()}: " + ("exact Gaussian" if gaussian else "Renyi or pure composition"),
        composition=_composition(releases),
        trust=trust,
        not_covered=(*outside, "rounding of floating-point noise"),
    )


def of_sums(
    found: SumNoise, *, smallest: int, who: str, unit: str, colluding: float, ledger: dict[str, Any] | None = None
) -> PrivacyCard:
    """A run whose server sees secure sums of at least ``smallest`` participants, each with its share of the noise."""
    spent, delta = found.spent, found.budget.delta
    largest = sqrt(sum(one**2 for one in found.norms.values())) * spread("replace", found.nonnegative)
    noises = ", ".join(f"{name} {one:.4g}" for name, one in found.noise.items())
    return PrivacyCard(
        unit=unit,
        adjacency=REPLACE,
        epsilon=spent.epsilon(delta),
        delta=delta,
        rho=spent.rho,
        mechanism="discrete Gaussian noise in shares of the participants; deviation in each number of a sum: "
        f"{noises}; one user moves a sum by at most {largest:.4g}",
        sensitivity=largest,
        noise=dict(found.noise),
        accountant=f"dp-accounting {_version()}: exact Gaussian plus the error of summing discrete ones, or zCDP",
        composition=_composition(found.releases),
        trust=f"the server sees sums of at least {smallest} {who} (secure sums); the noise is complete if "
        f"{found.summands} of them draw theirs honestly, and up to {colluding:.0%} may collude with the server",
        not_covered=OUTSIDE,
        ledger=ledger,
    )


def repeatable(card: PrivacyCard) -> PrivacyCard:
    """The same of a run that can be repeated to the bit, and so its noise."""
    return card if card.epsilon is None else replace(card, not_covered=(*card.not_covered, SEED))


def over_nodes(card: PrivacyCard) -> PrivacyCard:
    """The same of a run whose nodes know of nobody else's users."""
    return card if card.epsilon is None else replace(card, not_covered=(*card.not_covered, APART))


def no_noise(trust: str) -> PrivacyCard:
    """A run whose server sees secure sums without noise."""
    return _none("sums without noise", trust, (LOSSES, *OUTSIDE))


def _none(why: str, trust: str, outside: tuple[str, ...]) -> PrivacyCard:
    return PrivacyCard("user", "", None, None, None, why, None, {}, "", "", trust, outside)


def _composition(releases: int) -> str:
    many = "1 release" if releases == 1 else f"{releases} releases"
    return f"{many} of a user's data in this run; rho adds up over releases and runs"


def _version() -> str:
    from importlib.metadata import version

    return version("dp-accounting")
