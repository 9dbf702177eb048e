"""Private item tables trained with no federation at all, in plain numpy: what the canary is held against."""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

from fedrec import keyed
from fedrec.data.ragged import Int64, Ragged
from fedrec.errors import BadInput
from fedrec.evaluation.task import Task

Float32 = NDArray[np.float32]

_CELLS = 1 << 24  # numbers of private tables held at once


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
            rows, labels, weights = batch(train, exclude, drawn, n_items, negatives)
            _fit(own, table, rows, labels, weights, n_items, epochs, lr)
        scores[begin : begin + step] = np.einsum("ud,uid->ui", own, table.reshape(len(some), n_items, dim))
    return scores


def batch(
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
