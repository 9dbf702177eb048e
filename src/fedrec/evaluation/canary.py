"""The leak canary: a method that learns from nobody else must not beat chance.

A client that trains a private item table on its own interactions alone knows nothing about items it never
touched: among those, its ranking is a guess. Where such a client finds held-out items all the same, the
protocol has told it which they are, most often through the pool of training negatives.
"""

from __future__ import annotations

import math
from collections.abc import Mapping

import numpy as np

from fedrec.errors import BadInput
from fedrec.evaluation.metrics import Float64, Positions, first_of_group, parse, values
from fedrec.evaluation.sums import MetricSums
from fedrec.evaluation.task import Part, Task


def chance(task: Task, part: Part, metric: str) -> float:
    """What a random scorer gets in expectation, exactly: the value of one group of equal scores."""
    wanted = parse(metric)
    if wanted.published:
        raise BadInput(f"{metric} has no exact chance value; take {metric.rstrip('!')} instead")
    targets = task.valid if part == "valid" else task.test
    n = targets.counts
    if wanted.sampled:
        listed = n + np.minimum(wanted.sampled, task.data.n_items - task.observed.counts)
    else:
        masked = task.train.counts + (task.valid.counts if part == "test" and task.protocol.mask_valid else 0)
        listed = task.data.n_items - masked
    place = np.arange(wanted.cut)[None, :]
    hit = np.where(place < listed[:, None], n[:, None] / np.maximum(listed, 1)[:, None], 0.0)
    first = first_of_group(np.zeros_like(n), listed, n, wanted.cut)
    return float(np.nanmean(values(Positions(hit, first, n), (wanted,))[metric]))


def leak_banner(
    local: MetricSums | Mapping[str, Float64],
    chance: float,
    metric: str = "HR@10/99",
    *,
    protocol: str = "this protocol",
    single: bool = True,
    min_z: float = 4.0,
    min_gain: float = 0.03,
) -> str | None:
    """A warning where the control without federation beats chance, else None.

    One-sided test of the mean of ``metric`` over users: ``z > min_z`` and at least ``min_gain`` above chance.
    The metrics lie in [0, 1], so ``chance * (1 - chance)`` bounds the variance under chance. Where a client
    holds several users (``single=False``) they learn from one another, and beating chance proves nothing.
    """
    if not single:
        return None
    sums = local if isinstance(local, MetricSums) else MetricSums.from_values(local)
    if metric not in sums.sums or not sums.count:
        return None
    reached = sums.means()[metric]
    error = math.sqrt(max(chance * (1.0 - chance), 1e-12) / sums.count)
    z = (reached - chance) / error
    if z <= min_z or reached - chance < min_gain:
        return None
    return (
        f"LEAK: under {protocol} clients that learn from nobody reach {metric} {reached:.3f} where chance is "
        f"{chance:.3f} (z = {z:.0f}, {sums.count} users): held-out items can be guessed from training data, "
        "and no figure in this table measures recommendation quality alone"
    )
