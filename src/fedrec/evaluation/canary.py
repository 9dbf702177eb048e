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


def guesses(task: Task, part: Part) -> float:
    """How many independent guesses a ranking that all clients share makes on their held-out items.

    Clients that learn from nobody still share a start. Where a few items are held out by most users, that start ranks
    them for everybody at once: one lucky guess counts many times. With ``w_j`` the share of the held-out items that is
    item j, each user's counting one, it is ``1 / sum_j w_j^2``: as many as users where all held-out items differ.
    """
    targets = task.valid if part == "valid" else task.test
    evaluated = max(1, int((targets.counts > 0).sum()))
    weights = np.bincount(targets.values, weights=1.0 / targets.counts[targets.owners], minlength=1) / evaluated
    return float(1.0 / max((weights**2).sum(), 1e-12))


def leak_banner(
    local: MetricSums | Mapping[str, Float64],
    chance: float,
    metric: str = "HR@10/99",
    *,
    protocol: str = "this protocol",
    single: bool = True,
    independent: float | None = None,
    min_z: float = 4.0,
    min_gain: float = 0.03,
) -> str | None:
    """A warning where the control without federation beats chance, else None.

    One-sided test of the mean of ``metric`` over users: ``z > min_z`` and at least ``min_gain`` above chance.
    The metrics lie in [0, 1], so ``chance * (1 - chance)`` bounds the variance under chance; ``independent`` is what
    :func:`guesses` gives, where users' guesses are no more independent than that. Where a client
    holds several users (``single=False``) they learn from one another, and beating chance proves nothing.
    """
    if not single:
        return None
    sums = local if isinstance(local, MetricSums) else MetricSums.from_values(local)
    if metric not in sums.sums or not sums.count:
        return None
    reached = sums.means()[metric]
    independent = sums.count if independent is None else min(independent, sums.count)
    error = math.sqrt(max(chance * (1.0 - chance), 1e-12) / independent)
    z = (reached - chance) / error
    if not (z > min_z and reached - chance >= min_gain):  # nor where nothing was evaluated, and both are no numbers
        return None
    return (
        f"LEAK: under {protocol} clients that learn from nobody reach {metric} {reached:.3f} where chance is "
        f"{chance:.3f} (z = {z:.0f}, {sums.count} users): held-out items can be guessed from training data, "
        "and no figure in this table measures recommendation quality alone"
    )
