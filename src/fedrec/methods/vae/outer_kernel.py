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
from fedrec.methods.vae.row_kernel import WIDE, adam_of_factors

_FAST = {"contract", "reassoc", "nsz", "arcp"}
_EPS = np.float32(EPS)


@njit(cache=True, nogil=True, error_model="numpy", fastmath=_FAST)
def read_layers(users, start, weights, inputs, epoch, out):
    """``out[u] = sum over the rows i of u of inputs[i, epoch] * weights[i]``.

    One row after the other: memory is what limits this, and gives a single stream the fastest.
    """
    width = weights.shape[1]
    for u in users:
        total = out[u]
        total[:] = np.float32(0)
        for i in range(start[u], start[u + 1]):
            a = inputs[i, epoch]
            if a != 0:
                row = weights[i]
                for j in range(width):
                    total[j] += a * row[j]


@njit(cache=True, nogil=True, error_model="numpy", fastmath=_FAST)
def step_layers(users, start, weights, inputs, deltas, epoch, rate, adam, accumulate, want_back, back):
    """Send ``deltas[u, epoch]`` back through each layer, then take a step with its gradient, in one pass.

    ``back[i] = weights[i] . deltas[u, epoch]`` at the weights before the step; ``inputs`` is
    ``[rows, epochs]``, ``deltas`` is ``[users, epochs, width]``. With ``accumulate`` the gradient of an epoch
    is the sum up to it.
    """
    width = weights.shape[1]
    count = epoch + 1
    first = np.empty((count, width), np.float32)  # c_e delta_e
    second = np.empty((count, width), np.float32)  # d_e delta_e^2
    m, v, g = np.empty(width, np.float32), np.empty(width, np.float32), np.empty(width, np.float32)
    whole_1, whole_2 = 1.0 - BETA_1**count, 1.0 - BETA_2**count
    places, once, twice = np.empty(count, np.int64), np.empty(count, np.float32), np.empty(count, np.float32)
    for u in users:
        if adam:
            for e in range(count):
                c = np.float32((1.0 - BETA_1) * BETA_1 ** (epoch - e) / whole_1)
                d = np.float32((1.0 - BETA_2) * BETA_2 ** (epoch - e) / whole_2)
                for j in range(width):
                    delta = deltas[u, e, j]
                    first[e, j] = c * delta
                    second[e, j] = d * delta * delta
        now = deltas[u, epoch]
        for i in range(start[u], start[u + 1]):
            row = weights[i]
            if adam and not accumulate:
                seen = 0
                for e in range(count):
                    a = inputs[i, e]
                    if a != 0:
                        places[seen], once[seen], twice[seen] = e * width, a, a * a
                        seen += 1
                if seen or want_back:
                    back[i] = adam_of_factors(row, now, first, second, places, once, twice, seen, width // WIDE, rate)
                    for j in range(width // WIDE * WIDE, width):
                        back[i] += row[j] * now[j]
                        a, b = np.float32(0), np.float32(0)
                        for e in range(seen):
                            a += once[e] * first[places[e] // width, j]
                            b += twice[e] * second[places[e] // width, j]
                        row[j] -= rate * a / (math.sqrt(b) + _EPS)
                continue
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
                c = np.float32((1.0 - BETA_1) * BETA_1 ** (epoch - e) / whole_1)
                d = np.float32((1.0 - BETA_2) * BETA_2 ** (epoch - e) / whole_2)
                for j in range(width):
                    g[j] += a * history[j]
                    m[j] += c * g[j]
                    v[j] += d * g[j] * g[j]
            for j in range(width):
                row[j] -= rate * m[j] / (math.sqrt(v[j]) + _EPS)
