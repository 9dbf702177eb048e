"""The arithmetic of the leak: what a table reaches that knows nothing but which items it was shown as negatives.

Where held-out items are never drawn as training negatives, a client's table finds them by elimination. After T rounds
of N negatives for each of n positives, an item of the pool of p has been pushed down with probability
``1 - (1 - 1/p)^(N n T)``. The held-out item never is, and stands anywhere among the K of the C sampled items that were
not drawn either: HR@k = E[min(1, k / (K + 1))] with K ~ Binomial(C, (1 - 1/p)^(N n T)). Nothing is fitted and nothing
is learnt. Where held-out items are drawn like all others, this model gets chance.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from fedrec.errors import BadInput
from fedrec.evaluation.task import Task
from fedrec.experiment.analyses.points import Point
from fedrec.runs.folder import RunFolder

EXPECTED = "elimination alone"


def expected(task: Task, negatives: int, rounds: Sequence[int], k: int = 10) -> list[Point]:
    """HR@k among the protocol's sampled items after so many rounds, the mean over users."""
    sampled = task.protocol.candidates
    if not sampled:
        raise BadInput(f"{task.protocol.name} ranks no sampled items; choose a protocol that does, e.g. paper-fedca")
    if (task.test.counts > 1).any():
        raise BadInput(f"{task.data.name} has several test items per user; this analysis needs a single held-out item")
    evaluated = task.test.counts == 1
    pool = np.maximum(1, task.data.n_items - task.exclude.counts[evaluated])
    missed = 1 - 1 / pool if task.protocol.leaky else np.ones(len(pool))
    points = []
    for number in rounds:
        draws = negatives * task.train.counts[evaluated] * number
        left = missed ** draws.astype(np.float64)  # [users] of other items that still stand as high as the held-out one
        points.append(Point(float(number), EXPECTED, f"HR@{k}/{sampled}", float(np.mean(hit(left, sampled, k)))))
    return points


def hit(left: NDArray[np.float64], sampled: int, k: int) -> NDArray[np.float64]:
    """``E[min(1, k / (K + 1))]`` for K ~ Binomial(sampled, left), for every entry.

    >>> hit(np.array([0.0, 1.0]), 99, 10).round(3).tolist()
    [1.0, 0.1]
    """
    from scipy.stats import binom

    count = np.arange(sampled + 1)[:, None]
    return np.asarray((binom.pmf(count, sampled, left[None]) * np.minimum(1, k / (count + 1))).sum(0))


def observed(folders: Sequence[Path], metric: str, task: Task) -> list[Point]:
    """The same metric on test, round by round, of runs on the same data and protocol."""
    points = []
    for path in folders:
        folder = RunFolder.open(path)
        there = folder.settings()
        if there.protocol != task.protocol.name or Path(there.data).name != task.data.name:
            raise BadInput(
                f"{path} is a run on {there.data} under {there.protocol}; give runs on {task.data.name} under "
                f"{task.protocol.name}"
            )
        points += [
            Point(float(record["round"]), path.name or path.resolve().name, metric, float(record["test"][metric]))
            for record in folder.records()
            if record["test"] and metric in record["test"]
        ]
    return points
