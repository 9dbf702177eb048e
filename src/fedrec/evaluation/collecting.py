"""Values of users whose scores come piece by piece, in whatever order: in one process, or on a node of a network."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
from numpy.typing import NDArray

from fedrec import keyed
from fedrec.data.ragged import Int64
from fedrec.evaluation.counting import Counting, countable
from fedrec.evaluation.evaluating import evaluate_parts
from fedrec.evaluation.held import Float32, Held
from fedrec.evaluation.metrics import Float64, MetricSet
from fedrec.evaluation.task import Part


def evaluated_users(seed: int, user_keys: keyed.U64, many: int | None) -> NDArray[np.bool_]:
    """``[users]`` who is evaluated: everybody, or a keyed sample, the same one wherever the users are."""
    wanted = np.ones(len(user_keys), bool)
    if many is not None and many < len(user_keys):
        draw = keyed.streams(keyed.stream(seed, "evaluated users"), user_keys)
        wanted[:] = False
        wanted[np.argsort(draw, kind="stable")[:many]] = True
    return wanted


class Collecting:
    """Metric values of users for each part (validation, test)."""

    def __init__(self, held: Mapping[Part, Held], wanted: NDArray[np.bool_], metrics: MetricSet) -> None:
        """``wanted`` ``[users]`` says who is evaluated; ``held`` is of those alone, in the same order."""
        self.held, self.wanted, self.metrics = dict(held), wanted, metrics
        self._place = np.cumsum(wanted) - 1  # [users] where those who are wanted lie in what is held
        some = list(self.held.values())
        self._counting = Counting(some, metrics) if countable(some) and not metrics.published else None
        self.begin()

    def begin(self) -> None:
        self._values: dict[Part, dict[str, Float64]] = {part: {} for part in self.held}
        if self._counting is not None:
            self._counting.begin()

    def add(self, users: Int64, scores: Float32) -> None:
        """Scores ``[users, n_items]`` of the users at these positions; those of others are left out."""
        keep = self.wanted[users]
        if not keep.all():
            users, scores = users[keep], scores[keep]
        if self._counting is not None:
            self._counting.add(self._place[users], scores)
        elif len(users):
            some: dict[str, Held] = {part: held.take(self._place[users]) for part, held in self.held.items()}
            found = evaluate_parts(scores, some, self.metrics)
            for part in self.held:
                for name, values in found[part].items():
                    self._values[part].setdefault(name, np.full(len(self.wanted), np.nan))[users] = values

    def values(self) -> dict[Part, dict[str, Float64]]:
        """The metrics of each user ``[users]`` so far, part by part; NaN for those who were not scored."""
        if self._counting is None or not self._counting.scored.any():
            return self._values
        found = zip(self.held, self._counting.values(), strict=True)
        return {part: {name: self._of_all(one) for name, one in own.items()} for part, own in found}

    def _of_all(self, values: Float64) -> Float64:
        """Values of those held for evaluation, spread over all users."""
        if len(values) == len(self.wanted) and self.wanted.all():
            return values
        whole = np.full(len(self.wanted), np.nan)
        whole[self.wanted] = values[self._place[self.wanted]]
        return whole
