"""Layers that every user has for itself, on the CPU (numba): reading them, and Adam steps of rank one.

A user has one training example, so the gradient of a layer ``[in, out]`` in epoch ``e`` is the outer product
``a_e delta_e^T``. After a few epochs of a fresh Adam its two moments are sums of such products:

    m = sum_e  c_e a_e delta_e^T,      v = sum_e  d_e a_e^2 (delta_e^2)^T.

They are rebuilt from the factors row by row while the row is in the cache, so that a step reads and writes
the weights once and moments never exist in memory. Layers of all users lie below each other: user ``u`` has
the rows ``start[u] .. start[u + 1]``.
"""

from __future__ import annotations

import math

import numpy as np

from fedrec.compiled import njit
from fedrec.learn.adam import BETA_1, BETA_2, EPS
from fedrec.methods.vae.row_kernel import TOGETHER, WIDE, step_of_one, step_of_several

_FAST = {"contract", "reassoc", "nsz", "arcp"}
_EPS = np.float32(EPS)


@njit(cache=True, nogil=True, error_model="numpy", fastmath=_FAST)
def read_layers(users, start, weights, inputs, epoch, out):
    """``out[u] = sum over the rows i of u of inputs[i, epoch] * weights[i]``.

    Four rows at a time, so that the sum is read and written once for all of them; rows of zeros are passed over.
    """
    width = weights.shape[1]
    few = np.empty(4, np.int64)
    for u in users:
        total = out[u]
        total[:] = np.float32(0)
        waiting = 0
        for i in range(start[u], start[u + 1]):
            if inputs[i, epoch] == 0:
                continue
            few[waiting] = i
            waiting += 1
            if waiting == 4:
                a, b, c, d = inputs[few[0], epoch], inputs[few[1], epoch], inputs[few[2], epoch], inputs[few[3], epoch]
                one, two, three, four = weights[few[0]], weights[few[1]], weights[few[2]], weights[few[3]]
                for j in range(width):
                    total[j] += (a * one[j] + b * two[j]) + (c * three[j] + d * four[j])
                waiting = 0
        for place in few[:waiting]:
            a, one = inputs[place, epoch], weights[place]
            for j in range(width):
                total[j] += a * one[j]


@njit(cache=True, nogil=True, error_model="numpy", fastmath=_FAST)
def step_layers(users, start, weights, inputs, deltas, epoch, rate, want_back, back):
    """Send ``deltas[u, epoch]`` back through each layer, then take a step of Adam with its gradient, in one pass.

    ``back[i] = weights[i] . deltas[u, epoch]`` at the weights before the step; ``inputs`` is
    ``[rows, epochs]``, ``deltas`` is ``[users, epochs, width]``.
    """
    width = weights.shape[1]
    count = epoch + 1
    first = np.empty((count, width), np.float32)  # c_e delta_e
    second = np.empty((count, width), np.float32)  # d_e delta_e^2
    once, twice = np.empty((TOGETHER, count), np.float32), np.empty((TOGETHER, count), np.float32)  # a_e, a_e^2
    blocks, rest = width // WIDE, width // WIDE * WIDE
    for u in users:
        now = deltas[u, epoch]
        for e in range(count):
            c, d = _shares(e, count)
            for j in range(width):
                delta = deltas[u, e, j]
                first[e, j] = c * delta
                second[e, j] = d * delta * delta
        i = start[u]
        while i < start[u + 1]:
            rows = TOGETHER if i + TOGETHER <= start[u + 1] else 1
            seen = np.float32(0)
            for t in range(rows):
                for e in range(count):
                    a = inputs[i + t, e]
                    once[t, e], twice[t, e] = a, a * a
                    seen += abs(a)
            if seen != 0 or want_back:
                if rows == TOGETHER:
                    step_of_several(weights, i, width, now, first, second, once, twice, count, blocks, rate, back)
                else:
                    step_of_one(weights, i, width, now, first, second, once, twice, count, blocks, rate, back)
                for t in range(rows):
                    row = weights[i + t]
                    for j in range(rest, width):
                        back[i + t] += row[j] * now[j]
                        m, v = np.float32(0), np.float32(0)
                        for e in range(count):
                            m += once[t, e] * first[e, j]
                            v += twice[t, e] * second[e, j]
                        row[j] -= rate * m / (math.sqrt(v) + _EPS)
            i += rows


@njit(cache=True, nogil=True, error_model="numpy", fastmath=_FAST)
def step_layers_otherwise(users, start, weights, inputs, deltas, epoch, rate, adam, want_back, back):
    """The same by plain descent, or by an Adam that sees the sum of all gradients so far."""
    width = weights.shape[1]
    count = epoch + 1
    m, v, g = np.empty(width, np.float32), np.empty(width, np.float32), np.empty(width, np.float32)
    for u in users:
        now = deltas[u, epoch]
        for i in range(start[u], start[u + 1]):
            row = weights[i]
            if want_back:
                total = np.float32(0)
                for j in range(width):
                    total += row[j] * now[j]
                back[i] = total
            if not adam:
                a = rate * inputs[i, epoch]
                for j in range(width):
                    row[j] -= a * now[j]
                continue
            g[:], m[:], v[:] = np.float32(0), np.float32(0), np.float32(0)
            for e in range(count):
                a, history = inputs[i, e], deltas[u, e]
                c, d = _shares(e, count)
                for j in range(width):
                    g[j] += a * history[j]
                    m[j] += c * g[j]
                    v[j] += d * g[j] * g[j]
            for j in range(width):
                row[j] -= rate * m[j] / (math.sqrt(v[j]) + _EPS)


@njit(cache=True, nogil=True, error_model="numpy")
def _shares(e, count):
    """``c_e`` and ``d_e``: what is left of epoch ``e`` (gradient, and its square) in the moments of step ``count``."""
    left = count - 1 - e
    c = (1.0 - BETA_1) * BETA_1**left / (1.0 - BETA_1**count)
    d = (1.0 - BETA_2) * BETA_2**left / (1.0 - BETA_2**count)
    return np.float32(c), np.float32(d)
