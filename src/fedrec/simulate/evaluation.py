"""Evaluation in process: scores come block by block, values per user come out."""

from __future__ import annotations

import time
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from fedrec import keyed
from fedrec.core.loop import Evaluated, PerUser
from fedrec.core.messages import Float32
from fedrec.core.population import Population, newcomers
from fedrec.data.ragged import Int64, segments
from fedrec.evaluation.counting import Counting, countable
from fedrec.evaluation.evaluating import evaluate_parts
from fedrec.evaluation.held import Held
from fedrec.evaluation.sums import MetricSums
from fedrec.evaluation.task import PARTS, Part, Task

MIB = 1 << 20
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
        self.wanted = np.ones(len(people.users), bool)
        if evaluate_users is not None and evaluate_users < len(people.users):
            draw = keyed.streams(keyed.stream(seed, "evaluated users"), people.block.user_keys)
            self.wanted[:] = False
            self.wanted[np.argsort(draw, kind="stable")[:evaluate_users]] = True
        self.held = {part: task.held(part, people.users[self.wanted]) for part in self.parts}
        self.place = np.cumsum(self.wanted) - 1  # [users] where those who are wanted lie in what is held
        per_client = len(people.users) / max(1, people.world.n_clients)
        room = min(memory_mb / 32, SCORES_MB / 4) * MIB  # scores, and what it takes to make them
        self.clients_at_once = max(1, int(room / (people.world.n_items * max(1.0, per_client))))
        some, metrics = list(self.held.values()), task.protocol.metrics
        self.counting = Counting(some, metrics) if countable(some) and not metrics.published else None
        self.begin()

    def begin(self) -> None:
        """Forget what was collected."""
        self._values: dict[Part, PerUser] = {part: {} for part in self.parts}
        self.seconds = 0.0
        if self.counting is not None:
            self.counting.begin()

    def add(self, clients: Int64, scores: Float32) -> None:
        """Scores ``[users of these clients, n_items]``."""
        began = time.perf_counter()
        users = segments(self.people.block.user_start, clients)
        keep = self.wanted[users]
        if not keep.all():
            users, scores = users[keep], scores[keep]
        if self.counting is not None:
            self.counting.add(self.place[users], scores)
        elif len(users):
            held: dict[str, Held] = {part: self.held[part].take(self.place[users]) for part in self.parts}
            found = evaluate_parts(scores, held, self.task.protocol.metrics)
            for part in self.parts:
                for name, values in found[part].items():
                    into = self._values[part].setdefault(name, np.full(len(self.people.users), np.nan))
                    into[users] = values
        self.seconds += time.perf_counter() - began

    def values(self) -> dict[Part, PerUser]:
        """The metrics of each user ``[users]`` so far, part by part; NaN for those who were not scored."""
        if self.counting is None or not self.counting.scored.any():
            return self._values
        found = zip(self.parts, self.counting.values(), strict=True)
        return {part: {name: self._of_wanted(one) for name, one in own.items()} for part, own in found}

    def result(self) -> Evaluated:
        """Sums over users, and the test values of each user in the data's own order."""

        began, values = time.perf_counter(), self.values()

        def of_all(values: NDArray[np.float64]) -> NDArray[np.float64]:
            whole = np.full(self.task.data.n_users, np.nan)
            whole[self.people.users] = values
            return whole

        sums = {part: MetricSums.from_values(values.get(part, {})) for part in PARTS}
        per_user = {name: of_all(v) for name, v in values.get("test", {}).items()}
        self.seconds += time.perf_counter() - began
        return Evaluated(sums["valid"], sums["test"], per_user or None)

    def _of_wanted(self, values: NDArray[np.float64]) -> NDArray[np.float64]:
        """Values of those held for evaluation, spread over all users."""
        if len(values) == len(self.people.users) and self.wanted.all():
            return values
        whole = np.full(len(self.people.users), np.nan)
        whole[self.wanted] = values[self.place[self.wanted]]
        return whole
