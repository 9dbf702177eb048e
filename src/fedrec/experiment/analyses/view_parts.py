"""What the two views of a method reach by themselves, round after round, and how widely each scores unseen items."""

from __future__ import annotations

from typing import Any

import numpy as np

from fedrec.core.loop import Progress, Record, run_rounds
from fedrec.core.messages import Float32
from fedrec.errors import BadInput
from fedrec.evaluation.evaluating import evaluate
from fedrec.experiment.analyses.points import SHOWN, OnRound, Point
from fedrec.experiment.prepare import Prepared, prepare
from fedrec.experiment.resolve import resolve

CHUNK = 64
"""Clients whose tables are looked at together."""
SPREAD = "spread"
"""Standard deviation of the scores of items that a user has not trained on, mean over users."""
METHODS = ("fedrap", "fed3cr", "fediar")


def view_parts(method: str, given: dict[str, Any], on_round: OnRound | None = None) -> list[Point]:
    """Train a method; at every evaluated round, its metrics with both views, the shared and the private one alone.

    Series are ``METHOD, full`` and so on; the metric :data:`SPREAD` is of the scores themselves.
    """
    if method not in METHODS:
        raise BadInput(f"{method} has no two views of an item; give {', '.join(METHODS)}, or folders of their runs")
    rounds = resolve(method, given).rounds
    prepared = prepare(resolve(method, {"evaluate_every": max(1, rounds // 10), **given}))
    points: list[Point] = []

    def after(record: Record, progress: Progress) -> None:
        if on_round is not None:
            on_round(method, record)
        if record.test is not None:
            points.extend(_measured(prepared, method, float(record.round)))

    run_rounds(prepared.runtime, prepared.plan, Progress(), after)
    return points


def _measured(prepared: Prepared, name: str, number: float) -> list[Point]:
    """Every part's metrics on the test items, with each client's private state and a fresh download."""
    from fedrec.methods.two_views.parts import parts

    method: Any = prepared.method
    clients = prepared.people.block.n_clients
    scores: dict[str, list[Float32]] = {}
    spreads: dict[str, list[Float32]] = {}
    for first in range(0, clients, CHUNK):
        private, download, block = prepared.runtime.at_home(np.arange(first, min(first + CHUNK, clients)))
        unseen = np.ones((block.n_users, block.n_items), bool)
        unseen[block.train.owners, block.train.values] = False
        for part, found in parts(method, private, method.model(download), block).items():
            scores.setdefault(part, []).append(found)
            spreads.setdefault(part, []).append(np.std(found, axis=1, where=unseen))
    held = prepared.task.held("test", prepared.people.users)
    points = []
    for part, found_scores in scores.items():
        series = f"{name}, {part}"
        for metric, values in evaluate(np.concatenate(found_scores), held, prepared.task.protocol.metrics).items():
            if metric in SHOWN:
                points.append(Point(number, series, metric, float(np.nanmean(values))))
        points.append(Point(number, series, SPREAD, float(np.concatenate(spreads[part]).mean())))
    return points
