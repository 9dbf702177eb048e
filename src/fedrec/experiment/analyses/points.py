"""What analyses measure, how they report their rounds, and how they look at a model that they have trained."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fedrec.core.block import Block
from fedrec.core.loop import Progress, Record, run_rounds
from fedrec.core.method import Keys, Update
from fedrec.evaluation.evaluating import evaluate
from fedrec.evaluation.held import Held
from fedrec.experiment.prepare import Prepared

OnRound = Callable[[str, Record], None]
SHOWN = ("HR@10/99", "NDCG@10/99", "HR@10", "NDCG@10")
"""Metrics that the analyses report."""
CHUNK = 64
"""Clients whose tables are looked at together."""


@dataclass(frozen=True)
class Point:
    """One measurement: where, of what, and its value."""

    x: float
    series: str
    metric: str
    value: float


def watch(on_round: OnRound | None, label: str) -> Callable[[Record, Progress], None]:
    def after(record: Record, progress: Progress) -> None:
        if on_round is not None:
            on_round(label, record)

    return after


def one_more_round(prepared: Prepared, on_round: OnRound | None) -> tuple[Keys, Update[Any, Any]]:
    """Train all rounds; then what every client makes of one more, and the keys of that round."""
    method: Any = prepared.method
    runtime, settings = prepared.runtime, prepared.settings
    run_rounds(runtime, prepared.plan, Progress(), watch(on_round, method.name))
    block, keys = prepared.people.block, Keys(settings.seed, settings.rounds + 1)
    download = method.download(runtime.server, block.clients)
    return keys, method.local_update(runtime.private, download, block, keys)


def homes(prepared: Prepared) -> Iterator[tuple[Any, Any, Block]]:
    """All clients, some at a time: what is private to them, what they would download, and their block."""
    clients = prepared.people.world.n_clients
    for first in range(0, clients, CHUNK):
        yield prepared.runtime.at_home(np.arange(first, min(first + CHUNK, clients)))


def metric_points(x: float, series: str, scores: NDArray[np.float32], held: Held, prepared: Prepared) -> list[Point]:
    """The metrics of scores ``[users, n_items]`` as points, the means over users."""
    found = evaluate(scores, held, prepared.task.protocol.metrics)
    return [Point(x, series, name, float(np.nanmean(values))) for name, values in found.items() if name in SHOWN]
