"""The two views of a method: how they agree in a finished run, and what each reaches by itself, round after round."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fedrec.core.loop import Progress, Record, run_rounds
from fedrec.core.messages import Float32
from fedrec.errors import BadInput
from fedrec.experiment.analyses.points import OnRound, Point, homes, metric_points
from fedrec.experiment.open import opened
from fedrec.experiment.prepare import Prepared, prepare
from fedrec.experiment.resolve import resolve

SPREAD = "spread"
"""Standard deviation of the scores of items that a user has not trained on, mean over users."""
METHODS = ("fedrap", "fed3cr", "fediar")


@dataclass(frozen=True)
class Views:
    """How a run's two views of the items agree (Fed3CR, Figures 6 and 7)."""

    name: str
    users: list[str]
    overlap: NDArray[np.float64]  # [users] rank-biased overlap of the two top lists
    client: str
    correlation: NDArray[np.float64]  # [d, d] of that client


def two_views(run: Path, client: str | None = None, depth: int = 50, p: float = 0.99) -> Views:
    """Agreement of the consensus and the private view for all users, their correlation on one client."""
    from fedrec.methods.two_views.reading import Reader
    from fedrec.methods.two_views.views import TwoViews

    prepared = opened(run).prepared
    method: Any = prepared.method
    if not isinstance(method, TwoViews):
        raise BadInput(
            f"{run} is a run of {method.name}, which does not have two views of an item; give runs of fed3cr, fedrap"
        )
    ids = prepared.people.client_ids
    if client is not None and client not in ids:
        raise BadInput(f"{prepared.task.data.name} has no client {client!r}; its {len(ids)} start with {ids[0]!r}")
    shown = ids.index(client) if client is not None else 0

    def reader(private: Any, download: Any, block: Any) -> Reader:
        return Reader.of(method, private, method.model(download), block)

    return Views(
        str(run),
        [str(name) for name in prepared.task.data.user_ids[prepared.people.users]],
        np.concatenate([reader(*home).overlap(depth, p) for home in homes(prepared)]),
        ids[shown],
        reader(*prepared.runtime.at_home(np.array([shown]))).correlation(0),
    )


def view_parts(method: str, given: dict[str, Any], on_round: OnRound | None = None) -> list[Point]:
    """Train a method; at every evaluated round, its metrics with both views, the shared and the private one alone.

    Series are ``METHOD, full`` and so on; the metric :data:`SPREAD` is of the scores themselves.
    """
    if method not in METHODS:
        raise BadInput(
            f"{method} does not have two views of an item; give {', '.join(METHODS)}, or folders of their runs"
        )
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
    scores: dict[str, list[Float32]] = {}
    spreads: dict[str, list[Float32]] = {}
    for private, download, block in homes(prepared):
        unseen = np.ones((block.n_users, block.n_items), bool)
        unseen[block.train.owners, block.train.values] = False
        for part, found in parts(method, private, method.model(download), block).items():
            scores.setdefault(part, []).append(found)
            spreads.setdefault(part, []).append(np.std(found, axis=1, where=unseen))
    held = prepared.task.held("test", prepared.people.users)
    points = []
    for part, found_scores in scores.items():
        points += metric_points(number, f"{name}, {part}", np.concatenate(found_scores), held, prepared)
        points.append(Point(number, f"{name}, {part}", SPREAD, float(np.concatenate(spreads[part]).mean())))
    return points
