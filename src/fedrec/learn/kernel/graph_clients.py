"""All local epochs of a client that convolves over its own graph (LightGCN), in one go (numba).

The gradients are written out: convolution is linear and symmetric, so the way back is the way forward, and the pairwise
loss pulls at three rows a sample. Items outside the client's graph take no part in convolution.
"""

from __future__ import annotations

import math

import numpy as np
from numba import types

from fedrec.compiled import njit
from fedrec.learn.adam import BETA_1, BETA_2, EPS
from fedrec.learn.kernel.random import epoch_key, order
from fedrec.learn.kernel.signatures import flat, of_clients

_B1, _B2 = np.float32(BETA_1), np.float32(BETA_2)
_C1, _C2 = np.float32(1 - BETA_1), np.float32(1 - BETA_2)
_EPS = np.float32(EPS)
_ZERO, _ONE = np.float32(0), np.float32(1)


@njit(error_model="numpy")
def _add(into, factor, row):
    """``into += factor row``."""
    for k in range(len(into)):
        into[k] += factor * row[k]


@njit(error_model="numpy")
def _copy(into, row):
    """``into = row``; a loop compiles in a fraction of what assigning to a slice takes."""
    for k in range(len(into)):
        into[k] = row[k]


@njit(error_model="numpy")
def _clear(rows, count):
    """The first rows become zero."""
    for i in range(count):
        for k in range(rows.shape[1]):
            rows[i, k] = _ZERO


@njit(error_model="numpy", fastmath={"reassoc", "contract"})
def _apart(left, right, other):
    """``left . (right - other)``, summed in vectors."""
    total = _ZERO
    for k in range(len(left)):
        total += left[k] * (right[k] - other[k])
    return total


@njit(error_model="numpy")
def _place(ids, first, last, item):
    """Where an item is in the ascending ``ids[first:last]``."""
    while first < last:
        middle = (first + last) >> 1
        if ids[middle] < item:
            first = middle + 1
        else:
            last = middle
    return first


@njit(error_model="numpy")
def _convolve(people, items, n_users, edges, own, column, weight, layers, now_u, now_i, next_u, next_i):
    """Means over the layers of users and items, in their places; ``own`` are the items of the graph."""
    for u in range(n_users):
        _copy(now_u[u], people[u])
    for i in range(len(own)):
        _copy(now_i[i], items[own[i]])
    for _ in range(layers):
        _clear(next_u, n_users)
        _clear(next_i, len(own))
        for u in range(n_users):
            for edge in range(edges[u], edges[u + 1]):
                _add(next_u[u], weight[edge], now_i[column[edge]])
                _add(next_i[column[edge]], weight[edge], now_u[u])
        for u in range(n_users):
            _add(people[u], _ONE, next_u[u])
        for i in range(len(own)):
            _add(items[own[i]], _ONE, next_i[i])
        now_u, next_u = next_u, now_u
        now_i, next_i = next_i, now_i


@njit(error_model="numpy")
def _descend(value, first, second, gradient, rate, step, adam):
    """Step ``step`` of a row; the moments are zero before the first."""
    if not adam:
        _add(value, -rate, gradient)
        return
    size = np.float32(rate / (1 - BETA_1**step))
    below = np.float32(1 - BETA_2**step)
    if step == 1:
        for k in range(len(value)):
            first[k] = second[k] = _ZERO
    for k in range(len(value)):
        g = gradient[k]
        m = _B1 * first[k] + _C1 * g
        v = _B2 * second[k] + _C2 * g * g
        first[k] = m
        second[k] = v
        value[k] -= size * m / (np.sqrt(v / below) + _EPS)


@njit(
    of_clients("C", flat(types.int64), flat(types.int32), types.int64, *[types.float32] * 2, types.boolean),
    cache=True,
    nogil=True,
    error_model="numpy",
)
def train_graph_clients(
    clients, start, user, row, negative, label, rows_start, rows_ids, user_start,
    table, personal, users, users_out, changes, loss, keys, epochs, batch,
    lists_start, lists, layers, rate, decay, adam,
):  # fmt: skip
    """Train the given clients; writes their users, item-row changes and last epoch's loss."""
    d = users.shape[1]
    most_users, most_rows, most_samples, most_edges = 1, 1, 1, 1
    for c in clients:
        most_users = max(most_users, user_start[c + 1] - user_start[c])
        most_rows = max(most_rows, rows_start[c + 1] - rows_start[c])
        most_samples = max(most_samples, start[c + 1] - start[c])
        most_edges = max(most_edges, lists_start[user_start[c + 1]] - lists_start[user_start[c]])
    most_own = min(most_edges, most_rows)
    # values, after convolution, gradients, moments
    people = np.empty((5, most_users, d), np.float32)
    items = np.empty((5, most_rows, d), np.float32)
    layers_u = np.empty((2, most_users, d), np.float32)
    layers_i = np.empty((2, most_own, d), np.float32)
    edges = np.empty(most_users + 1, np.int64)
    column, weight = np.empty(most_edges, np.int32), np.empty(most_edges, np.float32)
    degree, spot, owned = np.empty(most_rows, np.int64), np.empty(most_rows, np.int32), np.empty(most_own, np.int32)
    permuted = np.empty(most_samples + 1, np.uint32)
    share_of = np.float32(layers + 1)

    for c in clients:
        first, n = start[c], start[c + 1] - start[c]
        row_0, n_rows = rows_start[c], rows_start[c + 1] - rows_start[c]
        user_0, n_users = user_start[c], user_start[c + 1] - user_start[c]
        at = c if personal else 0
        for u in range(n_users):
            _copy(people[0, u], users[user_0 + u])
        for r in range(n_rows):
            _copy(items[0, r], table[at, rows_ids[row_0 + r]])
        if n > 0:
            # the graph, normalised within the client; its items are numbered on their own
            for r in range(n_rows):
                degree[r] = 0
            base = lists_start[user_0]
            for u in range(n_users + 1):
                edges[u] = lists_start[user_0 + u] - base
            for edge in range(edges[n_users]):
                column[edge] = _place(rows_ids, row_0, row_0 + n_rows, lists[base + edge]) - row_0
                degree[column[edge]] += 1
            n_own = 0
            for r in range(n_rows):
                if degree[r]:
                    spot[r] = n_own
                    owned[n_own] = r
                    n_own += 1
            for u in range(n_users):
                for edge in range(edges[u], edges[u + 1]):
                    r = column[edge]
                    weight[edge] = 1.0 / math.sqrt(edges[u + 1] - edges[u]) * (1.0 / math.sqrt(degree[r]))
                    column[edge] = spot[r]
            own = owned[:n_own]

        step = 0
        total_loss = 0.0
        for epoch in range(epochs):
            if n > 0:
                order(n, epoch_key(keys[c], epoch), permuted)
            for begin in range(0, n, batch):
                step += 1
                end = min(begin + batch, n)
                share = _ONE / np.float32(end - begin)
                smooth_u, smooth_i, pull_u, pull_i = people[1], items[1], people[2], items[2]
                for u in range(n_users):
                    _copy(smooth_u[u], people[0, u])
                for r in range(n_rows):
                    _copy(smooth_i[r], items[0, r])
                _convolve(
                    smooth_u, smooth_i, n_users, edges, own, column, weight, layers,
                    layers_u[0], layers_i[0], layers_u[1], layers_i[1],
                )  # fmt: skip
                _clear(pull_u, n_users)
                _clear(pull_i, n_rows)
                for j in range(begin, end):
                    sample = first + permuted[j]
                    u, good, bad = user[sample] - user_0, row[sample], negative[sample]
                    # what comes out of convolution is a sum over layers here, not yet their mean
                    x = _apart(smooth_u[u], smooth_i[good], smooth_i[bad]) / (share_of * share_of)
                    if epoch == epochs - 1:
                        total_loss += max(-x, _ZERO) + math.log1p(math.exp(-abs(x)))
                    slope = -share / (_ONE + np.exp(x)) / (share_of * share_of)
                    _add(pull_u[u], slope, smooth_i[good])
                    _add(pull_u[u], -slope, smooth_i[bad])
                    _add(pull_i[good], slope, smooth_u[u])
                    _add(pull_i[bad], -slope, smooth_u[u])
                _convolve(
                    pull_u, pull_i, n_users, edges, own, column, weight, layers,
                    layers_u[0], layers_i[0], layers_u[1], layers_i[1],
                )  # fmt: skip
                if decay:
                    for j in range(begin, end):
                        sample = first + permuted[j]
                        u, good, bad = user[sample] - user_0, row[sample], negative[sample]
                        _add(pull_u[u], decay * share, people[0, u])
                        _add(pull_i[good], decay * share, items[0, good])
                        _add(pull_i[bad], decay * share, items[0, bad])
                for u in range(n_users):
                    _descend(people[0, u], people[3, u], people[4, u], pull_u[u], rate, step, adam)
                for r in range(n_rows):
                    _descend(items[0, r], items[3, r], items[4, r], pull_i[r], rate, step, adam)

        for u in range(n_users):
            _copy(users_out[user_0 + u], people[0, u])
        for r in range(n_rows):
            _copy(changes[row_0 + r], items[0, r])
            _add(changes[row_0 + r], -_ONE, table[at, rows_ids[row_0 + r]])
        loss[c] = total_loss / n if n > 0 else 0.0
