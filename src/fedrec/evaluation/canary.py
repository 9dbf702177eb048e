"""The leak canary: a method that learns from nobody else must not beat chance.

A client that trains a private item table on its own interactions alone knows nothing about items it never
touched: among those, its ranking is a guess. Where such a client finds held-out items all the same, the
protocol has told it which they are, most often through the pool of training negatives.
"""

from __future__ import annotations

import math
from collections.abc import Mapping

import numpy as np
from numpy.typing import NDArray

from fedrec import keyed
from fedrec.data.ragged import Int64, Ragged
from fedrec.errors import BadInput
from fedrec.evaluation.metrics import Float64, Positions, first_of_group, parse, values
from fedrec.evaluation.sums import MetricSums
from fedrec.evaluation.task import Part, Task

Float32 = NDArray[np.float32]

_CELLS = 1 << 24  # numbers of private tables held at once


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


def private_table_trainer(
    task: Task,
    seed: int,
    rounds: int = 10,
    epochs: int = 10,
    dim: int = 16,
    users: NDArray[np.integer] | None = None,
    negatives: int = 4,
    lr: float = 0.01,
    init: float = 0.5,
) -> Float32:
    """Scores ``[users, n_items]`` of private item tables, trained with no federation at all.

    Each user has a vector and an item table of its own, both normal with standard deviation ``init`` at the
    start (the smaller, the sooner elimination shows). Each round draws ``negatives`` items a positive from
    outside ``task.exclude`` and takes ``epochs`` full-batch Adam steps (fresh moments each round) on the
    binary cross-entropy. Rows that are not drawn get no gradient and do not move: only drawn ones are read.
    """
    users = np.arange(task.data.n_users) if users is None else users
    n_items = task.data.n_items
    scores = np.empty((len(users), n_items), np.float32)
    step = max(1, _CELLS // (n_items * dim))
    for begin in range(0, len(users), step):
        some = users[begin : begin + step]
        streams = keyed.streams(keyed.stream(seed, "canary"), task.user_keys[some])
        start = init * keyed.normal(streams, (n_items + 1) * dim).astype(np.float32)
        start = start.reshape(len(some), n_items + 1, dim)
        own, table = start[:, 0].copy(), start[:, 1:].reshape(-1, dim)
        train, exclude = task.train.take(some), task.exclude.take(some)
        for number in range(rounds):
            drawn = keyed.streams(keyed.stream(seed, "canary", number), task.user_keys[some])
            rows, labels, weights = _batch(train, exclude, drawn, n_items, negatives)
            _fit(own, table, rows, labels, weights, n_items, epochs, lr)
        scores[begin : begin + step] = np.einsum("ud,uid->ui", own, table.reshape(len(some), n_items, dim))
    return scores


def _batch(
    train: Ragged, exclude: Ragged, streams: keyed.U64, n_items: int, negatives: int
) -> tuple[Int64, Float32, Float32]:
    """Flat rows ``user * n_items + item`` of a round's sample, their labels, and how often each was drawn."""
    free = n_items - exclude.counts
    if (free == 0).any():
        raise BadInput(f"the user at position {int(np.argmin(free))} has every item: no negatives can be drawn")
    wanted = negatives * train.counts
    owner = np.repeat(np.arange(len(train)), wanted)
    nth = np.arange(len(owner)) - np.repeat(np.cumsum(wanted) - wanted, wanted)
    word = keyed.mix(streams[owner] + (nth.astype(np.uint64) + np.uint64(1)) * np.uint64(keyed.GOLDEN))
    place = (((word >> np.uint64(32)) * free[owner].astype(np.uint64)) >> np.uint64(32)).astype(np.int64)
    # the place-th item outside a sorted list x is place + (how many i have x[i] - i <= place)
    gaps = exclude.values - (np.arange(len(exclude.values)) - exclude.start[exclude.owners])
    before = np.searchsorted(exclude.owners * n_items + gaps, owner * n_items + place, side="right")
    item = place + before - exclude.start[owner]
    rows, counts = np.unique(owner * n_items + item, return_counts=True)
    positive = train.owners * n_items + train.values
    labels = np.repeat(np.array([1.0, 0.0], np.float32), [len(positive), len(rows)])
    weights = np.concatenate([np.ones(len(positive)), counts]).astype(np.float32)
    order = np.argsort(np.concatenate([positive, rows]))
    return np.concatenate([positive, rows])[order], labels[order], weights[order]


def _fit(
    own: Float32,
    table: Float32,
    rows: Int64,
    labels: Float32,
    weights: Float32,
    n_items: int,
    epochs: int,
    lr: float,
) -> None:
    """Adam on the user vectors ``[users, d]`` and the drawn table rows, in place."""
    owner = rows // n_items
    start = np.searchsorted(owner, np.arange(len(own)))
    present = np.flatnonzero(np.bincount(owner, minlength=len(own)))
    total = np.add.reduceat(weights, start[present])
    share = weights / np.repeat(total, np.bincount(owner, minlength=len(own))[present])
    drawn = table[rows]
    moments = [(np.zeros_like(own), np.zeros_like(own)), (np.zeros_like(drawn), np.zeros_like(drawn))]
    for step in range(1, epochs + 1):
        mine = own[owner]  # [rows, d]
        error = (_sigmoid(np.einsum("rd,rd->r", mine, drawn)) - labels) * share
        to_own = np.zeros_like(own)
        to_own[present] = np.add.reduceat(error[:, None] * drawn, start[present], axis=0)
        for values_, gradient, (mean, square) in (
            (own, to_own, moments[0]),
            (drawn, error[:, None] * mine, moments[1]),
        ):
            mean += 0.1 * (gradient - mean)
            square += 0.001 * (gradient * gradient - square)
            rate = lr * math.sqrt(1.0 - 0.999**step) / (1.0 - 0.9**step)
            values_ -= rate * mean / (np.sqrt(square) + 1e-8)
    table[rows] = drawn


def _sigmoid(value: Float32) -> Float32:
    return np.asarray(0.5 * (1.0 + np.tanh(0.5 * value)), np.float32)
