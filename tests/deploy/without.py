"""An in-process run in which some clients take no part in some rounds."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from fedrec.core.loop import Progress, run_rounds
from fedrec.core.participation import Participation
from fedrec.experiment.prepare import prepare


@dataclass(frozen=True)
class Absent(Participation):
    """As drawn, less those who are away: ``away[round]`` are positions of clients."""

    away: dict[int, Any] = field(default_factory=dict)

    def choose(self, seed: int, number: int, client_keys: Any) -> Any:
        chosen = super().choose(seed, number, client_keys)
        return np.setdiff1d(chosen, self.away.get(number, []))


def in_process_without(settings: Any, away: dict[int, Any]) -> list[Any]:
    """The log of an in-process run without these clients in these rounds."""
    prepared = prepare(settings.model_copy(update={"runtime": "simulate"}))
    plan = prepared.plan
    plan = replace(plan, participation=Absent(**vars(plan.participation), away=away))
    return run_rounds(prepared.runtime, plan, Progress(), lambda record, now: None).records


def clients_of(people: Any, part: int, parts: int) -> Any:
    """The clients that a node hosts."""
    return np.array_split(np.arange(people.world.n_clients), parts)[part]
