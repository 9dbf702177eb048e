"""Rows of two stacked tables on the CPU (numba): what a mini-batch and the prototypes read and change.

A row is read and written where it lies. Stacked tables come flat, ``[tables * m, d]``.
"""

from __future__ import annotations

import math

import numpy as np

from fedrec.compiled import njit

_FAST = {"contract", "reassoc", "nsz", "arcp"}


@njit(cache=True, nogil=True, error_model="numpy", fastmath=_FAST)
def mean_rows(table, where, weight, out):
    """Prototypes: ``out[c] = sum_i weight[c, i] table[where[c, i]]`` (Eq. 10); padding has weight 0."""
    clients, most = where.shape
    for c in range(clients):
        total = out[c]
        total[:] = np.float32(0)
        for i in range(most):
            share = weight[c, i]
            if share != 0:
                row = table[where[c, i]]
                for k in range(len(total)):
                    total[k] += share * row[k]


@njit(cache=True, nogil=True, error_model="numpy", fastmath=_FAST)
def spread_rows(table, where, weight, gradient, rate):
    """A step on the rows behind the prototypes: ``table[where[c, i]] -= rate weight[c, i] gradient[c]``."""
    clients, most = where.shape
    for c in range(clients):
        for i in range(most):
            share = rate * weight[c, i]
            if share != 0:
                row = table[where[c, i]]
                for k in range(gradient.shape[1]):
                    row[k] -= share * gradient[c, k]


@njit(cache=True, nogil=True, error_model="numpy", fastmath=_FAST)
def sample_slopes(
    shared, private, where, owner, label, weight, users, turned, bias, each, slope, to_shared, to_private, to_bias
):
    """Loss and slope of every sample (Eq. 7, 11-13), and sums over each user's samples.

    ``s = turned . c + u . v + b``; ``slope = (sigmoid(s) - label) weight``. The sums of ``slope c`` and ``slope v`` are
    added to ``to_shared[u]`` and ``to_private[u]``, those of the slopes to ``to_bias[u]``. An empty ``bias`` is none.
    """
    dim = users.shape[1]
    affine = len(bias) > 0
    for i in range(len(where)):
        if weight[i] == 0:
            each[i] = np.float32(0)
            slope[i] = np.float32(0)
            continue
        u = owner[i]
        c, v, person, other = shared[where[i]], private[where[i]], users[u], turned[u]
        s = np.float32(0)
        for k in range(dim):
            s += other[k] * c[k] + person[k] * v[k]
        if affine:
            s += bias[u]
        small = math.exp(-abs(s))  # in (0, 1], so that neither form overflows
        each[i] = max(s, np.float32(0)) - s * label[i] + math.log1p(small)
        likely = 1 / (1 + small) if s >= 0 else small / (1 + small)
        a = np.float32((likely - label[i]) * weight[i])
        slope[i] = a
        to_bias[u] += a
        at_c, at_v = to_shared[u], to_private[u]
        for k in range(dim):
            at_c[k] += a * c[k]
            at_v[k] += a * v[k]


@njit(cache=True, nogil=True, error_model="numpy", fastmath=_FAST)
def descend_rows(shared, private, where, owner, slope, users, turned, rate, own_rate):
    """The mini-batch's step: ``c -= rate slope turned``, ``v -= own_rate slope u`` for every sample."""
    dim = users.shape[1]
    for i in range(len(where)):
        if slope[i] == 0:
            continue
        c, v, person, other = shared[where[i]], private[where[i]], users[owner[i]], turned[owner[i]]
        a, b = rate * slope[i], own_rate * slope[i]
        for k in range(dim):
            c[k] -= a * other[k]
            v[k] -= b * person[k]
