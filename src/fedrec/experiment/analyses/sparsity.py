"""Sparsity (FedCA Figures 5 and 6, Table 3): accuracy over the share of training data."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from fedrec.core.loop import Progress, run_rounds
from fedrec.core.population import population
from fedrec.evaluation.task import thinned
from fedrec.experiment.analyses.points import SHOWN, OnRound, Point, watch
from fedrec.experiment.prepare import make_runtime, prepare
from fedrec.experiment.resolve import resolve


def sparsity(
    methods: Sequence[str], shares: Sequence[float], given: dict[str, Any], on_round: OnRound | None = None
) -> list[Point]:
    """Test metrics of each method trained on a share of every user's data (Figures 5 and 6, Table 3).

    The evaluating is the whole task's: what was dropped from training is still no candidate.
    """
    points: list[Point] = []
    for method in methods:
        prepared = prepare(resolve(method, dict(given)))
        for share in shares:
            thin = thinned(prepared.task, share)
            people = population(thin)
            runtime = make_runtime(prepared.settings, prepared.method, people, prepared.task)
            progress = run_rounds(runtime, prepared.plan, Progress(), watch(on_round, f"{method} {share:g}"))
            best = next(r for r in progress.records if r.round == progress.best_round)
            points += [Point(share, method, m, v) for m, v in (best.test or {}).items() if m in SHOWN]
    return points
