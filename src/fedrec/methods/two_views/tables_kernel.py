"""What a step of Fed3CR and FedRAP does to both tables of one client on the CPU (numba).

They are read twice, in blocks of rows: first for the cosines and ``K = C^T V``, then to move them. In between all is
small. So both stay in cache, and no temporary is larger than a table. The formulas are those of
:mod:`fedrec.methods.two_views.closed`, whose names are used here.
"""

from __future__ import annotations

import math

import numpy as np
from numba import types

from fedrec.compiled import njit
from fedrec.methods.two_views.products_kernel import add_product, dots, mix

BLOCK = 64
"""Rows at a time: those of both tables and what is made of them fit into the nearest cache."""
EPS = 1e-8
FAST = {"contract", "reassoc", "nsz", "arcp"}
ZERO, ONE = np.float32(0), np.float32(1)


_table = types.float32[:, ::1]


@njit(types.void(_table), cache=True, nogil=True, error_model="numpy")
def clear(table):
    """Zeros."""
    for i in range(table.shape[0]):
        for k in range(table.shape[1]):
            table[i, k] = ZERO


@njit(types.void(_table, types.float32[:, :], types.float32), cache=True, nogil=True, error_model="numpy")
def scale_into(out, table, factor):
    """``out = factor * table``."""
    for i in range(table.shape[0]):
        for k in range(table.shape[1]):
            out[i, k] = factor * table[i, k]


@njit(nogil=True, error_model="numpy", fastmath=FAST)
def dot(left, right):
    total = ZERO
    for k in range(len(left)):
        total += left[k] * right[k]
    return total


@njit(nogil=True, error_model="numpy", fastmath=FAST)
def read(tables, own, gram, target, own_view, ranking, orthogonal, plain, turned, cross, lists):
    """First reading: K, ``C G``, and for every row ``c . G p^G``, ``c . G c``, ``v . p^P``, ``v . v``; ``|C|, |V|``."""
    m, d = tables.shape
    clear(cross)
    size, own_size = 0.0, 0.0
    if not ranking and not orthogonal:
        return size, own_size
    for begin in range(0, m, BLOCK):
        end = min(begin + BLOCK, m)
        c, v = tables[begin:end], own[begin:end]
        t = c
        if ranking and not plain:
            t = turned[begin:end]
            clear(t)
            add_product(t, c, gram)
        if orthogonal:
            add_product(cross, c.T, v)
            size += dot(c.reshape(-1), c.reshape(-1))
            own_size += dot(v.reshape(-1), v.reshape(-1))
        if ranking:
            for i in range(end - begin):
                o = i * d
                lists[0, begin + i], lists[1, begin + i], lists[2, begin + i], lists[3, begin + i] = dots(
                    (c, c, v, v), (o, o, o, o), (target, t, own_view, v), (0, o, 0, o), d
                )
    return math.sqrt(size), math.sqrt(own_size)


@njit(nogil=True, error_model="numpy", fastmath=FAST)
def rank(lists, reach, own_reach, floor, scale, beta):
    """L_a's gradients (Eq. 16) from what the first reading found.

    ``lists`` become ``out`` and ``bend`` of the enhanced view, then of the personal one; returns both pulls.
    """
    q, lengths, p, own_lengths, likely, own_likely = lists[0], lists[1], lists[2], lists[3], lists[4], lists[5]
    top, own_top = -np.float32(np.inf), -np.float32(np.inf)
    for j in range(len(q)):
        lengths[j] = max(np.sqrt(max(lengths[j], ZERO)), floor)
        own_lengths[j] = max(np.sqrt(own_lengths[j]), floor)
        q[j] = q[j] / (lengths[j] * reach)
        p[j] = p[j] / (own_lengths[j] * own_reach)
        top, own_top = max(top, q[j]), max(own_top, p[j])
    total, own_total = 0.0, 0.0
    for j in range(len(q)):
        likely[j], own_likely[j] = np.exp(scale * (q[j] - top)), np.exp(scale * (p[j] - own_top))
        total += likely[j]
        own_total += own_likely[j]
    top += np.float32(math.log(total)) / scale
    own_top += np.float32(math.log(own_total)) / scale
    cross, own_cross = 0.0, 0.0  # sums of q log p and of p log q
    for j in range(len(q)):
        likely[j] /= np.float32(total)
        own_likely[j] /= np.float32(own_total)
        cross += likely[j] * (scale * (p[j] - own_top))
        own_cross += own_likely[j] * (scale * (q[j] - top))
    half = -np.float32(0.5) * scale * beta
    mean, own_mean = np.float32(cross), np.float32(own_cross)
    pull, own_pull = 0.0, 0.0
    for j in range(len(q)):
        apart = own_likely[j] - likely[j]
        at = half * (likely[j] * (scale * (p[j] - own_top) - mean) + apart)
        own_at = half * (own_likely[j] * (scale * (q[j] - top) - own_mean) - apart)
        bend, own_bend = at * q[j], own_at * p[j]
        pull += bend
        own_pull += own_bend
        length, own_length = lengths[j], own_lengths[j]
        q[j], p[j] = at / (length * reach), own_at / own_length
        lengths[j] = bend / (length * length) if length > floor else ZERO
        own_lengths[j] = own_bend / (own_length * own_length) if own_length > floor else ZERO
    return (
        np.float32(pull) / (reach * reach) if reach > floor else ZERO,
        np.float32(own_pull) if own_reach > floor else ZERO,
    )


@njit(nogil=True, error_model="numpy", fastmath=FAST)
def widest_weight(sizes, matrix, cross, gain, plain, lr_items, lr_transfer):
    """The largest weight of L_o whose step does not overshoot; see :mod:`fedrec.methods.two_views.overshoot`."""
    curvature = lr_items * max(sizes[0], sizes[1]) ** 2
    if not plain:
        turn, square = 0.0, 0.0
        for i in range(len(cross)):
            for k in range(len(cross)):
                turn += matrix[i, k] * matrix[i, k]
                square += cross[i, k] * cross[i, k]
        curvature = max(curvature * turn, lr_transfer * gain * square)
    return len(cross) / max(2 * curvature, EPS)


@njit(nogil=True, error_model="numpy", fastmath=FAST)
def move(
    c, v, turned, target, own_view, out, bend, own_out, own_bend,
    ranking, orthogonal, plain, turn, own_turn, weighed, carried, own_carried,
    fresh, rate, own_rate, own_inverse, apart, own_apart, sparse,
):  # fmt: skip
    """Second reading, a block of rows: both tables make their step, sums over all rows are carried on."""
    rows, d = c.shape
    if ranking:
        add_product(carried, out.reshape(1, rows), c)
        add_product(own_carried, own_out.reshape(1, rows), v)
        if not plain:
            for i in range(rows):
                mix(fresh, i * d, (bend[i],), (c,), (i * d,), d)
            add_product(weighed, fresh.T, c)  # C^T diag(.) C
    if ranking:
        for i in range(rows):
            o = i * d
            factors = (ONE + apart, rate * bend[i], -rate * out[i], -apart)
            mix(fresh, o, factors, (c, turned, target, v), (o, o, 0, o), d)
    else:
        mix(fresh, 0, (ONE + apart, -apart), (c, v), (0, 0), rows * d)
    if sparse:
        for i in range(rows):
            for k in range(d):
                fresh[i, k] -= sparse * np.sign(c[i, k])
    if orthogonal:
        add_product(fresh, v, turn)
    if ranking:
        for i in range(rows):
            o = i * d
            factors = (ONE + own_apart + own_rate * own_bend[i], -own_rate * own_inverse * own_out[i], -own_apart)
            mix(v, o, factors, (v, own_view, c), (o, 0, o), d)
    else:
        mix(v, 0, (ONE + own_apart, -own_apart), (v, c), (0, 0), rows * d)
    if orthogonal:
        add_product(v, c, own_turn)
    mix(c, 0, (ONE,), (fresh,), (0,), rows * d)
