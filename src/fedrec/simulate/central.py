"""Runs a centralised reference through the same loop: a round is one step of its fit."""

from __future__ import annotations

import time
from collections.abc import Sequence
from typing import Any

from fedrec import keyed
from fedrec.core.disclosed import Disclosed
from fedrec.core.loop import Cost, Evaluated
from fedrec.core.method import Keys
from fedrec.core.population import Population
from fedrec.core.reference import Reference
from fedrec.data.ragged import Int64
from fedrec.evaluation.task import PARTS, Part, Task
from fedrec.simulate.collected import Collected
from fedrec.simulate.evaluation import Evaluation


class CentralRun(Collected):
    """A reference as a runtime. It sees all histories: that is the point, and the report says so."""

    def __init__(
        self,
        reference: Reference[Any],
        people: Population,
        task: Task,
        seed: int,
        *,
        memory_mb: int = 1024,
        evaluate_users: int | None = None,
        parts: Sequence[Part] = PARTS,
    ) -> None:
        super().__init__(reference, people, seed)
        self.evaluating = Evaluation(
            task, people, seed, memory_mb=memory_mb, evaluate_users=evaluate_users, parts=parts
        )

    def client_keys(self) -> keyed.U64:
        return self.people.block.client_keys

    def round(self, number: int, chosen: Int64, answering: Int64, evaluate: bool) -> tuple[Cost, Evaluated | None]:
        began = time.perf_counter()
        self.state, loss = self.reference.step(self.state, self.data, Keys(self.seed, number))
        cost = Cost(loss=loss, participants=self.people.world.n_clients, train_seconds=time.perf_counter() - began)
        return cost, self.evaluate(number) if evaluate else None

    def evaluate(self, number: int) -> Evaluated:
        return self.evaluating.of_all(self)

    def disclosed(self) -> Disclosed | None:
        return None

    def recall(self, shown: Disclosed | None, rounds: int) -> None: ...
