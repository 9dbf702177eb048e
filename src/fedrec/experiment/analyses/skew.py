"""Embedding skew (FedCA Figure 3): train and test accuracy over the number of similar clients aggregated."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from fedrec import keyed
from fedrec.data.ragged import Int64, Ragged, offsets
from fedrec.errors import BadInput
from fedrec.evaluation import candidates
from fedrec.evaluation.held import Held
from fedrec.evaluation.task import sort_lists
from fedrec.experiment.analyses.points import OnRound, Point, metric_points, one_more_round
from fedrec.experiment.prepare import Prepared, prepare
from fedrec.experiment.resolve import resolve


def skew(
    given: dict[str, Any], neighbours: Sequence[int] = range(10, 101, 10), on_round: OnRound | None = None
) -> list[Point]:
    """Train and test metrics when each client's table is the mean of ``s`` similar clients' (Figure 3).

    FedAvg is trained; then, for each client, the tables of the most similar clients (smallest L2 distance, the
    largest ``s`` of them) are put in random order and the first ``s`` averaged by the size of their data.
    """
    prepared = prepare(resolve("fedavg", dict(given)))
    block, most = prepared.people.block, max(neighbours)
    if most >= block.n_clients:
        raise BadInput(f"{most} similar clients among {block.n_clients}; ask for at most {block.n_clients - 1}")
    keys, done = one_more_round(prepared, on_round)
    if done.upload.networks:
        raise BadInput("the skew analysis is of item tables; use backbone=mf")
    vectors = done.private.users
    tables = prepared.runtime.server.items[None] + done.upload.rows.dense()  # [clients, n_items, d]
    nearest = _shuffled_neighbours(tables, most, keys.clients(block, "similar"))
    held = {"train": last_trained(prepared), "test": prepared.task.held("test", prepared.people.users)}
    points: list[Point] = []
    for s in neighbours:
        mixed = _means(tables, nearest[:, :s], block.sizes)
        if block.single:
            scores = np.einsum("cmd,cd->cm", mixed, vectors)
        else:
            scores = np.stack([mixed[client] @ vectors[user] for user, client in enumerate(block.client_of_user)])
        for part, what in held.items():
            points += metric_points(float(s), part, scores.astype(np.float32), what, prepared)
    return points


def last_trained(prepared: Prepared) -> Held:
    """Each user's last training item as something to be found: the curve "train" of Figure 3."""
    task, users = prepared.task, prepared.people.users
    train = task.train.take(users)
    full = train.counts > 0
    last = np.where(full, train.start[1:] - 1, 0)
    targets = Ragged(offsets(full.astype(np.int64)), train.values[last[full]])
    rest = np.ones(len(train.values), bool)
    rest[last[full]] = False
    masked = sort_lists(Ragged(offsets(np.maximum(train.counts - 1, 0)), train.values[rest]))
    drawn = None
    if task.protocol.candidates:
        streams = keyed.streams(keyed.stream(task.seed, "candidates", "train"), task.user_keys[users])
        drawn = candidates.draw(streams, task.observed.take(users), task.data.n_items, task.protocol.candidates)
    return Held(targets, masked, drawn, None)


def _shuffled_neighbours(tables: Any, most: int, streams: keyed.U64) -> Int64:
    """``[clients, most]`` the nearest clients of each, oneself among them, in a random order."""
    from fedrec.maths.composite import squared_distances

    squares = squared_distances(np.ascontiguousarray(tables, np.float32))
    nearest = squares.topk(most, dim=1, largest=False).indices.numpy()
    order = np.argsort(keyed.words(streams, most), axis=1, kind="stable")
    return np.take_along_axis(nearest, order, axis=1).astype(np.int64)


def _means(tables: Any, nearest: Int64, sizes: Int64) -> Any:
    """Means of the chosen tables, by the size of their owners' data."""
    from fedrec.maths.composite import mix

    factor = np.zeros((len(tables), len(tables)), np.float32)
    np.put_along_axis(factor, nearest, sizes[nearest].astype(np.float32), axis=1)
    return mix(np.ascontiguousarray(tables, np.float32), factor / np.maximum(factor.sum(1, keepdims=True), 1e-12))
