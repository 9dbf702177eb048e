"""Evaluation in process: scores come block by block, values per user come out."""

from __future__ import annotations

import sys
from collections.abc import Iterator, Sequence

import numpy as np

from fedrec.core.loop import Evaluated, PerUser
from fedrec.core.messages import Float32
from fedrec.core.population import Population, newcomers
from fedrec.data.ragged import Int64, segments
from fedrec.evaluation.collecting import Collecting, evaluated_users
from fedrec.evaluation.held import require_items
from fedrec.evaluation.sums import MetricSums
from fedrec.evaluation.task import PARTS, Part, Task
from fedrec.memory import MIB
from fedrec.simulate.clients import Clients
from fedrec.simulate.collected import Collected

SCORES_MB = 12
"""Scores that are made at once: an allocator gives such a piece again, pages and all, and it is cached when read."""


class Evaluation:
    """Collects per-user metric values of one evaluation; a sample of users, or one part only, where asked for."""

    def __init__(
        self,
        task: Task,
        people: Population,
        seed: int,
        *,
        memory_mb: int = 1024,
        evaluate_users: int | None = None,
        parts: Sequence[Part] = PARTS,
    ) -> None:
        self.new = len(task.newcomers) > 0
        """Whether those evaluated are new: served by their history, in no training."""
        people = newcomers(task) if self.new else people
        self.task, self.people, self.parts = task, people, tuple(parts)
        self.wanted = evaluated_users(seed, people.block.user_keys, evaluate_users)
        held = {part: task.held(part, people.users[self.wanted]) for part in self.parts}
        self.collecting = Collecting(held, self.wanted, task.protocol.metrics)
        per_client = len(people.users) / max(1, people.world.n_clients)
        room = min(memory_mb / 32, SCORES_MB / 4) * MIB  # scores, and what it takes to make them
        self.clients_at_once = max(1, int(room / (people.world.n_items * max(1.0, per_client))))
        self.begin()

    def begin(self) -> None:
        """Forget what was collected."""
        self.collecting.begin()

    def add(self, clients: Int64, scores: Float32) -> None:
        """Scores ``[users of these clients, n_items]``."""
        require_items(scores, self.people.world.n_items)
        self.collecting.add(segments(self.people.block.user_start, clients), scores)

    def add_all(self, clients: Int64, known: Clients | Collected, at_once: int) -> None:
        """Evaluate some clients as they stand, so many at once at most."""
        for some in chunks(clients, min(at_once, self.clients_at_once)):
            self.add(some, known.scores_of_new(self.people.block.take(some)) if self.new else known.scores(some))

    def of_all(self, known: Clients | Collected, at_once: int = sys.maxsize) -> Evaluated:
        """One evaluation of everybody."""
        self.begin()
        self.add_all(np.arange(self.people.block.n_clients), known, at_once)
        return self.result()

    def values(self) -> dict[Part, PerUser]:
        """The metrics of each user ``[users]`` so far, part by part; NaN for those who were not scored."""
        return self.collecting.values()

    def result(self) -> Evaluated:
        """Sums over users, and the test values of each user in the data's own order."""
        values = self.values()
        sums = {part: MetricSums.from_values(values.get(part, {})) for part in PARTS}
        per_user = {name: np.full(self.task.data.n_users, np.nan) for name in values.get("test", {})}
        for name, whole in per_user.items():
            whole[self.people.users] = values["test"][name]
        return Evaluated(sums["valid"], sums["test"], per_user or None)


def chunks(positions: Int64, size: int) -> Iterator[Int64]:
    for first in range(0, len(positions), size):
        yield positions[first : first + size]
