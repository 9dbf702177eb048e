"""Evaluation: scores in, metrics of each user out."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
from numpy.typing import NDArray

from fedrec.data.ragged import Ragged
from fedrec.evaluation import published
from fedrec.evaluation.best import Best, best_of
from fedrec.evaluation.counting import Counting, countable
from fedrec.evaluation.held import Float32, Held, require_finite
from fedrec.evaluation.metrics import Float64, Metric, MetricSet, Positions, first_of_group, one_target, values


def evaluate(scores: Float32, held: Held, metrics: MetricSet) -> dict[str, Float64]:
    """The metrics of each user, by name: ``[users]``, NaN for users without a target.

    ``scores`` is ``[users, n_items]``, higher is better, and is not modified. Equal scores count as the
    average over all their orders.
    """
    if len(scores) != len(held):
        raise ValueError(f"scores of {len(scores)} users, but {len(held)} are evaluated")
    require_finite(scores)
    return _of_finite(scores, held, metrics)


def _of_finite(scores: Float32, held: Held, metrics: MetricSet) -> dict[str, Float64]:
    single = len(held) == 0 or int(held.targets.counts.max()) <= 1
    result: dict[str, Float64] = {}
    lists = (() if single else metrics.full) + metrics.published
    best = best_of(scores, held.masked, _depth(lists))
    if metrics.full:
        depth = _depth(metrics.full)
        if single:
            found = _full_of_one(scores, held, depth)
        else:
            own = scores[held.targets.owners, held.targets.values]
            found = _of_many(best.first(depth), own, held.targets, depth)
        result |= values(found, metrics.full)
    if metrics.sampled:
        if held.candidates is None:
            raise ValueError(f"{metrics.sampled[0].name} needs sampled candidates, but none were drawn")
        rank = _sampled_of_one if single else _sampled_of_many
        result |= values(rank(scores, held, _depth(metrics.sampled)), metrics.sampled)
    if metrics.published:
        result |= published.values(best, held.targets, held.numbers, metrics.published)
    return {name: result[name] for name in metrics.names}


def evaluate_parts(scores: Float32, parts: Mapping[str, Held], metrics: MetricSet) -> dict[str, dict[str, Float64]]:
    """:func:`evaluate` for one or two parts (validation and test) of the same users, in one pass over the scores."""
    some = list(parts.values())
    if any(len(held) != len(scores) for held in some) or not len(scores):
        return {part: evaluate(scores, held, metrics) for part, held in parts.items()}
    if not countable(some):
        require_finite(scores)
        return {part: _of_finite(scores, held, metrics) for part, held in parts.items()}
    counting = Counting(some, metrics)
    counting.add(np.arange(len(scores)), scores)
    found = dict(zip(parts, counting.values(), strict=True))
    for part, held in parts.items():
        if metrics.published:
            best = best_of(scores, held.masked, _depth(metrics.published))
            found[part] |= published.values(best, held.targets, held.numbers, metrics.published)
    return {part: {name: found[part][name] for name in metrics.names} for part in parts}


def _depth(metrics: tuple[Metric, ...]) -> int:
    return max([metric.cut for metric in metrics], default=0)


def _scores_of_one(scores: Float32, held: Held) -> tuple[NDArray[np.bool_], Float32]:
    """Whether each user has a target, and its score (``[users]``; zero where there is none)."""
    present = held.targets.counts > 0
    own = np.zeros(len(scores), scores.dtype)
    own[present] = scores[present, held.targets.values]
    return present, own


def _full_of_one(scores: Float32, held: Held, depth: int) -> Positions:
    present, own = _scores_of_one(scores, held)
    greater = np.count_nonzero(scores > own[:, None], axis=1)
    tied = np.count_nonzero(scores == own[:, None], axis=1)
    # masked items were counted above: take them off again, so that scores need no copy
    owner = held.masked.owners
    theirs = scores[owner, held.masked.values]
    greater = greater - np.bincount(owner, weights=theirs > own[owner], minlength=len(scores)).astype(np.int64)
    tied = tied - np.bincount(owner, weights=theirs == own[owner], minlength=len(scores)).astype(np.int64)
    return one_target(greater, tied, present, depth)


def _sampled_of_one(scores: Float32, held: Held, depth: int) -> Positions:
    assert held.candidates is not None
    present, own = _scores_of_one(scores, held)
    drawn = held.candidates >= 0
    theirs = np.take_along_axis(scores, np.maximum(held.candidates, 0), axis=1)  # [users, n]
    greater = np.count_nonzero((theirs > own[:, None]) & drawn, axis=1)
    tied = np.count_nonzero((theirs == own[:, None]) & drawn, axis=1) + 1  # the target itself
    return one_target(greater, tied, present, depth)


def _sampled_of_many(scores: Float32, held: Held, depth: int) -> Positions:
    assert held.candidates is not None
    targets = held.targets
    n = held.candidates.shape[1]
    ranked = np.full((len(scores), n + int(targets.counts.max())), -np.inf, scores.dtype)
    theirs = np.take_along_axis(scores, np.maximum(held.candidates, 0), axis=1)
    ranked[:, :n] = np.where(held.candidates >= 0, theirs, -np.inf)
    column = n + np.arange(len(targets.values)) - targets.start[targets.owners]
    own = ranked[targets.owners, column] = scores[targets.owners, targets.values]
    nothing = Ragged(np.zeros(len(scores) + 1, np.int64), np.empty(0, np.int32))
    return _of_many(best_of(ranked, nothing, depth), own, targets, depth)


def _of_many(listed: Best, own: Float32, targets: Ragged, depth: int) -> Positions:
    """Positions of several targets a user, whose scores are ``own``, in lists of the best.

    Groups of equal scores are whole within the list except the last, which may reach beyond it; sizes and
    numbers of targets are therefore counted per group, and for the last one over the whole row.
    """
    best, owner = listed.values, targets.owners
    users, length = best.shape
    # [users, length]: where the group of each place begins, how large it is, how many targets it has
    start = np.zeros((users, length), np.int64)
    size = np.zeros((users, length), np.int64)
    relevant = np.zeros((users, length), np.int64)
    for place in range(length):
        value = best[:, place]
        start[:, place] = np.count_nonzero(best > value[:, None], axis=1)
        size[:, place] = np.where(value == best[:, -1], listed.level, np.count_nonzero(best == value[:, None], axis=1))
        relevant[:, place] = np.bincount(owner, weights=own == value[owner], minlength=users)
    relevant[best == -np.inf] = 0
    hit = relevant / np.maximum(size, 1)
    leading = np.argmax(relevant > 0, axis=1)  # 0 where there is none: then relevant is 0 there as well
    rows = np.arange(users)
    first = first_of_group(start[rows, leading], size[rows, leading], relevant[rows, leading], length)
    pad = ((0, 0), (0, depth - length))
    return Positions(np.pad(hit, pad), np.pad(first, pad), targets.counts)
