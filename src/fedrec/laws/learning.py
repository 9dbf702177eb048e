"""Law 8: on a planted world with a known answer the method finds it, and beats popularity there."""

from __future__ import annotations

from functools import cache
from typing import Any

from fedrec.core.population import population
from fedrec.evaluation.protocols import find as find_protocol
from fedrec.laws.broken import Comparison
from fedrec.laws.small_runs import SEED, plan, run, simulator, world
from fedrec.methods.references.controls import Popularity
from fedrec.methods.registry import find
from fedrec.simulate.central import CentralRun

ENOUGH = {"dim": 16, "epochs": 10, "batch_size": 256}
AHEAD = 0.3
"""How far above popularity the method must come."""


@cache
def popular() -> dict[str, float]:
    """What popularity reaches on the planted world: chance."""
    task = find_protocol("strict").prepare(world("planted"), SEED)
    record = run(CentralRun(Popularity(), population(task), task, SEED), plan(1)).records[0]
    return dict(record.test or {})


def the_answer_is_found(method: str) -> None:
    """Law 8: with settings and rounds that the method calls enough. A method that exchanges nothing is left out."""
    law = Comparison("8", method)
    kind: Any = find(method)
    if not kind.federates:
        return
    settings = {k: v for k, v in {**ENOUGH, **kind.enough}.items() if k in kind.Settings.model_fields}
    found = run(simulator(method, world("planted"), settings=settings), plan(kind.enough_rounds, every=5))
    best = next(record.test or {} for record in found.records if record.round == found.best_round)
    for metric in ("HR@10", "HR@10/99"):
        if not best[metric] > popular()[metric] + AHEAD:
            raise law.broken(
                f"{metric} is {best[metric]:.3f} on the planted world after {len(found.records)} rounds; popularity "
                f"has {popular()[metric]:.3f}, and {AHEAD} more is asked for"
            )
