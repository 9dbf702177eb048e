"""A thread's scratch for one client at a time (numba)."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from fedrec.compiled import njit
from fedrec.learn.kernel.vectors import LANES


class Scratch(NamedTuple):
    """Arrays that one client after the other uses; vectors of a client are its users', then its item rows'."""

    state: Any  # vectors with their moments and gradients, in blocks (fedrec.learn.kernel.vectors)
    last: Any  # [vectors] step of the last gradient, 0 for none so far
    visited: Any  # [vectors] the step in whose list a vector is
    listed: Any  # vectors with a gradient at this step
    slopes: Any  # [vectors] sum of the loss's slopes at a row, where one user is all there is
    stale: Any  # of those listed, the ones that missed steps,
    since: Any  # and after which step
    made: Any  # [steps] for which step the constants of a gap since then were made last,
    gaps: Any  # [steps, 4] and they
    permuted: Any  # an epoch's order of samples
    places: Any  # [2, batch] where the rows of a batch lie: positives, negatives
    score: Any  # [2, batch] their scores, then slopes
    target: Any  # [batch] labels


@njit(inline="always")
def largest(clients, start, rows_start, user_start):
    """The most vectors (users and item rows), users and samples that one of the clients has; at least one of each."""
    vectors, users, samples = 1, 1, 1
    for c in clients:
        own = user_start[c + 1] - user_start[c]
        vectors = max(vectors, own + rows_start[c + 1] - rows_start[c])
        users = max(users, own)
        samples = max(samples, start[c + 1] - start[c])
    return vectors, users, samples


@njit(error_model="numpy")
def scratch(vectors, wide, samples, batch, steps):
    """Room for ``vectors`` of ``wide`` numbers; a batch's arrays end with a whole vector of LANES, lists one later."""
    room = (batch + LANES - 1) // LANES * LANES
    return Scratch(
        np.empty(vectors * wide, np.float32),
        np.empty(vectors, np.int32),
        np.empty(vectors, np.int32),
        np.empty(vectors + 1, np.int32),
        np.empty(vectors, np.float32),
        np.empty(vectors + 1, np.int32),
        np.empty(vectors + 1, np.int32),
        np.zeros(steps, np.int32),
        np.empty((steps, 4), np.float32),
        np.empty(samples + 1, np.uint32),
        np.empty((2, room), np.uint64),
        np.zeros((2, room), np.float32),
        np.zeros(room, np.float32),
    )
