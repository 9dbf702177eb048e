"""FedCIA's metrics as its public code computes them; kept only so that its tables can be compared.

Three things differ from the metrics of the same name:

1. The ranked list becomes a Python ``set`` and *that* is enumerated, so the order is lost. A set of small
   integers is walked by the slots of its hash table: ten items lie in 32 slots, item ``i`` at slot ``i % 32``
   (or the next free one). The "rank" of an item hence depends on its number, not on its score.
2. NDCG divides by the DCG of as many hits as were *found*, not of as many as there are. One hit in first
   place makes 1.0 whatever was missed.
3. F1 is the harmonic mean of *mean* Precision and *mean* Recall over users, not the mean of each user's F1:
   ``F1@k!``. A single user's value is that user's F1; :meth:`MetricSums.means` takes the means together.
   (GF-CF on the paper's ML-100K partition: 0.236 this way, 0.195 as the mean over users; the paper: 0.2356.)

The item numbers are the data's own where the ids are numbers, since those are what the public code hashed.
Equal scores are put in the order of a hash of the item, which favours nobody; no expectation is taken here.
"""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np

from fedrec.data.ragged import Int64, Ragged
from fedrec.evaluation.best import Best
from fedrec.evaluation.metrics import Float64, Metric, discounts


def enumerated(items: Iterable[int]) -> list[int]:
    """The items in the order in which Python walks a set built from them.

    >>> enumerated([33, 2, 64])
    [64, 33, 2]
    """
    return list(set(items))


def values(best: Best, targets: Ragged, numbers: Int64 | None, metrics: tuple[Metric, ...]) -> dict[str, Float64]:
    """``F1@k!``, ``MRR@k!`` and ``NDCG@k!`` of each user ``[users]``; NaN for users without a target."""
    result = {metric.name: np.full(len(targets), np.nan) for metric in metrics}
    users = np.flatnonzero(targets.counts > 0)
    listed = best.values > -np.inf
    for cut in {metric.cut for metric in metrics}:
        weight = discounts(cut)
        ideal = np.cumsum(weight)
        for user in users.tolist():
            items, theirs = best.items[user, :cut][listed[user, :cut]], targets[user]
            walked = enumerated((items if numbers is None else numbers[items]).tolist())
            wanted = set((theirs if numbers is None else numbers[theirs]).tolist())
            found = [place for place, item in enumerate(walked) if item in wanted]
            reciprocal = 1.0 / (found[0] + 1) if found else 0.0
            gain = float(weight[found].sum() / ideal[len(found) - 1]) if found else 0.0
            harmonic = 2.0 * len(found) / (cut + len(wanted))
            own = {"F1": harmonic, "MRR": reciprocal, "NDCG": gain}
            for metric in metrics:
                if metric.cut == cut:
                    result[metric.name][user] = own[metric.kind]
    return result
