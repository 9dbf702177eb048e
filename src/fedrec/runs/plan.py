"""The loop's plan out of run settings and protocol: the same in process and over a network."""

from __future__ import annotations

from typing import Any

from fedrec.core.loop import Plan
from fedrec.core.method import Card, Method
from fedrec.core.participation import Participation
from fedrec.core.reference import Reference
from fedrec.evaluation.rules import Rules
from fedrec.memory import kept_mb
from fedrec.robust.defence import Defence, defence
from fedrec.runs.settings import RunSettings


def participation_of(settings: RunSettings) -> Participation:
    """Who takes part, by the run's settings."""
    return Participation(settings.participation, settings.rest, settings.dropout)


def usual_defence(card: Card, protocol: Rules, secure: bool) -> str:
    """What guards the fold where a run does not say: the card's defence.

    None where a paper's procedure is repeated as it is, or where the server sees sums only.
    """
    return "none" if protocol.paper is not None or secure else card.robust


def defence_of(settings: RunSettings, names: str | None = None) -> Defence:
    """What guards the fold, by the run's settings; ``names`` in place of the pieces that they name."""
    pieces = settings.robust if names is None else names
    return defence(pieces, settings.robust_factor, settings.robust_share, kept_mb(settings.memory_mb))


def plan_of(settings: RunSettings, protocol: Rules, method: Method[Any, Any, Any, Any] | Reference[Any]) -> Plan:
    """How many rounds, who takes part, what is evaluated and when to stop."""
    selection = protocol.selection
    return Plan(
        rounds=settings.rounds,
        seed=settings.seed,
        participation=participation_of(settings),
        evaluated=protocol.evaluated,
        select_part=selection.part,
        select_metric=selection.metric,
        patience=settings.patience or selection.patience,
        settle=settings.settle,
        settled_after=method.settled_after() if isinstance(method, Method) else None,
        evaluate_every=settings.evaluate_every,
        keep_selected=settings.keep_selected,
    )
