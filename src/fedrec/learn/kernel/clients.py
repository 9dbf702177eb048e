"""The fused CPU kernel: all local epochs of a client in one go, for dot-product and affine scorers (numba).

A client's compact rows, moments and gradients live in one thread's scratch, padded to whole vectors.
Rows that are in no mini-batch of a step are not visited: Adam's moves at such steps are made up in one go
when the row is next needed (:mod:`fedrec.learn.adam`), so the cost is linear in samples, not rows x steps.
Clients that hold one user have a loop of their own (:mod:`fedrec.learn.kernel.one_user`).
"""

from __future__ import annotations

import math

import numpy as np
from numba import types

from fedrec.compiled import njit
from fedrec.learn.adam import BETA_1, BETA_2, EPS
from fedrec.learn.kernel.batch import slopes_of
from fedrec.learn.kernel.one_user import train_one
from fedrec.learn.kernel.plan import SCALE, SIZE, gap
from fedrec.learn.kernel.random import epoch_key, order
from fedrec.learn.kernel.scratch import largest, scratch
from fedrec.learn.kernel.signatures import flat, of_clients
from fedrec.learn.kernel.vectors import (
    FIRST,
    GRADIENT,
    LANES,
    ROOT,
    STRIDE,
    adam_gap,
    adam_step,
    add_scaled,
    changed,
    clear,
    dot,
    placed,
)

_BLOCK, _FIRST, _ROOT, _ROW_G = np.uint64(STRIDE), np.uint64(FIRST), np.uint64(ROOT), np.uint64(GRADIENT)
_B1, _B2 = np.float32(BETA_1), np.float32(BETA_2)
_C1, _C2 = np.float32(1 - BETA_1), np.float32(1 - BETA_2)
_EPS = np.float32(EPS)
_ZERO, _ONE = np.float32(0), np.float32(1)


@njit(inline="always")
def _place(k):
    """Where number ``k`` of a row lies in its blocks."""
    return np.uint64((k // LANES) * STRIDE + k % LANES)


_F32, _YES = types.float32, types.boolean
_OWN = (
    flat(_F32), _F32[::1], _F32, _F32,  # bias, rates
    _YES, _YES, _YES, _F32, types.Array(types.float64, 2, "C", readonly=True),  # adam, affine, pairs, mu, plan
)  # fmt: skip


@njit(of_clients("A", *_OWN), cache=True, nogil=True, error_model="numpy")
def train_clients(
    clients, start, user, row, negative, label,
    rows_start, rows_ids, user_start,
    table, personal, users, users_out, changes, loss, keys, epochs, batch,
    bias, bias_out, lr_users, lr_items, adam, affine, pairs, mu, plan,
):  # fmt: skip
    """Train the given clients; writes their users, biases, item-row changes and last epoch's loss.

    The numbers of a row of ``table`` and ``users`` lie side by side.

    ``mu`` is FedProx's weight of ``mu / 2 ||Q - Q_downloaded||^2`` over the compact rows; ``plan`` is
    ``Schedule.stacked()`` for at least as many steps as any client makes.
    """
    d = users.shape[1]
    blocks = np.uint64((d + LANES - 1) // LANES)
    wide = blocks * _BLOCK
    whole = d // LANES * LANES
    most, most_users, most_samples = largest(clients, start, rows_start, user_start)
    own = scratch(most, np.int64(wide), most_samples, batch, plan.shape[1])
    state, last, visited, listed = own.state, own.last, own.visited, own.listed
    permuted, score, target = own.permuted, own.score, own.target
    b, bm, bs, bg = (
        np.empty(most_users, np.float32),
        np.empty(most_users, np.float32),
        np.empty(most_users, np.float32),
        np.empty(most_users, np.float32),
    )

    for c in clients:
        first, n = start[c], start[c + 1] - start[c]
        row_0, n_rows = rows_start[c], rows_start[c + 1] - rows_start[c]
        user_0, n_users = user_start[c], user_start[c + 1] - user_start[c]
        at = c if personal else 0
        lone = n_users == 1 and mu == 0
        for i in range(n_users + n_rows):
            o = np.uint64(i) * wide
            source = users[user_0 + i] if i < n_users else table[at, rows_ids[row_0 + i - n_users]]
            for k in range(0, whole, LANES):
                placed(state, o + _place(k), source, k)
            if whole < d:
                for k in range(whole, whole + LANES):
                    state[o + _place(k)] = source[k] if k < d else _ZERO
                    state[o + _place(k) + _FIRST] = state[o + _place(k) + _ROOT] = _ZERO
            last[i] = visited[i] = 0
        for u in range(n_users):
            b[u] = bias[user_0 + u] if affine else _ZERO
            bm[u] = bs[u] = _ZERO

        step = 0
        total_loss = 0.0
        if lone:
            step = epochs * ((n + batch - 1) // batch)
            total_loss, b[0] = train_one(
                own, row, negative, label, first, n, keys[c], epochs, batch, lr_users, lr_items,
                adam, affine, pairs, b[0], blocks, plan,
            )  # fmt: skip
        for epoch in range(0 if lone else epochs):
            if n > 0:
                order(n, epoch_key(keys[c], epoch), permuted)
            for begin in range(0, n, batch):
                step += 1
                end = min(begin + batch, n)
                share = _ONE / np.float32(end - begin)
                count = 0
                # scores at the values before this step; vectors are brought up to date as they occur
                for j in range(begin, end):
                    sample = first + permuted[j]
                    u = np.int64(user[sample]) - user_0
                    o_user = np.uint64(u) * wide
                    if visited[u] != step:
                        visited[u] = step
                        listed[count] = u
                        count += 1
                        clear(state, o_user + _ROW_G, blocks)
                        bg[u] = _ZERO
                        if adam and last[u] > 0 and last[u] < step - 1:
                            a, eps, decay_m, decay_s = gap(plan, last[u], step - 1)
                            adam_gap(state, o_user, blocks, lr_users * a, eps, decay_m, decay_s)
                            b[u] -= lr_users * a * bm[u] / (bs[u] + eps)
                            bm[u] *= decay_m
                            bs[u] *= decay_s
                    value = _ZERO if pairs else b[u]
                    for side in range(2 if pairs else 1):
                        i = n_users + (negative[sample] if side else row[sample])
                        o = np.uint64(i) * wide
                        if visited[i] != step:
                            visited[i] = step
                            listed[count] = i
                            count += 1
                            clear(state, o + _ROW_G, blocks)
                            if adam and mu == 0 and last[i] > 0 and last[i] < step - 1:
                                a, eps, decay_m, decay_s = gap(plan, last[i], step - 1)
                                adam_gap(state, o, blocks, lr_items * a, eps, decay_m, decay_s)
                        got = dot(state, o_user, o, blocks)
                        value = value - got if side else value + got
                    score[0, j - begin] = value
                    target[j - begin] = _ONE if pairs else np.float32(label[sample])
                    if epoch == epochs - 1:
                        y = target[j - begin]
                        total_loss += max(value, _ZERO) - y * value + math.log1p(math.exp(-abs(value)))
                slopes_of(score[0], target, (end - begin + LANES - 1) // LANES, share)

                for j in range(begin, end):
                    sample = first + permuted[j]
                    u = np.int64(user[sample]) - user_0
                    o_user = np.uint64(u) * wide
                    slope = score[0, j - begin]
                    if affine and not pairs:
                        bg[u] += slope
                    o = np.uint64(n_users + row[sample]) * wide
                    add_scaled(state, o_user + _ROW_G, slope, o, blocks)
                    add_scaled(state, o + _ROW_G, slope, o_user, blocks)
                    if pairs:
                        o = np.uint64(n_users + negative[sample]) * wide
                        add_scaled(state, o_user + _ROW_G, -slope, o, blocks)
                        add_scaled(state, o + _ROW_G, -slope, o_user, blocks)

                if mu > 0:
                    # the pull towards the download acts at every step, on every row that has ever moved
                    for r in range(n_rows):
                        i = n_users + r
                        o = np.uint64(i) * wide
                        if visited[i] == 0:
                            continue
                        if visited[i] != step:
                            clear(state, o + _ROW_G, blocks)
                            listed[count] = i
                            count += 1
                        for k in range(d):
                            away = state[o + _place(k)] - table[at, rows_ids[row_0 + r], k]
                            state[o + _ROW_G + _place(k)] += mu * away

                size = np.float32(plan[SIZE, step]) if adam else _ONE
                scale = np.float32(plan[SCALE, step]) if adam else _ONE
                for l in range(count):
                    i = np.int64(listed[l])
                    o = np.uint64(i) * wide
                    rate = lr_users if i < n_users else lr_items
                    last[i] = step
                    if adam:
                        adam_step(state, o, blocks, rate * size, scale)
                    else:
                        add_scaled(state, o, -rate, o + _ROW_G, blocks)
                    if affine and i < n_users:
                        if adam:
                            bm[i] = _B1 * bm[i] + _C1 * bg[i]
                            bs[i] = np.sqrt(_B2 * bs[i] * bs[i] + _C2 * bg[i] * bg[i])
                            b[i] -= rate * size * bm[i] / (bs[i] * scale + _EPS)
                        else:
                            b[i] -= rate * bg[i]

        for i in range(n_users + n_rows):
            o = np.uint64(i) * wide
            rate = lr_users if i < n_users else lr_items
            if adam and last[i] > 0 and last[i] < step:
                a, eps, decay_m, decay_s = gap(plan, last[i], step)
                adam_gap(state, o, blocks, rate * a, eps, decay_m, decay_s)
                if i < n_users:
                    b[i] -= rate * a * bm[i] / (bs[i] + eps)
            if i < n_users:
                for k in range(d):
                    users_out[user_0 + i, k] = state[o + _place(k)]
                continue
            r = row_0 + i - n_users
            source, into = table[at, rows_ids[r]], changes[r]
            for k in range(0, whole, LANES):
                changed(state, o + _place(k), source, k, into)
            for k in range(whole, d):
                into[k] = state[o + _place(k)] - source[k]
        if affine:
            for u in range(n_users):
                bias_out[user_0 + u] = b[u]
        loss[c] = total_loss / n if n > 0 else 0.0
