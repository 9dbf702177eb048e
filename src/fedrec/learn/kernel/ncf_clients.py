"""All local epochs of a client whose score is a perceptron on ``[u; v]``, in one go (numba).

Beside users and item rows a client's scratch holds its copy of the network, in the same blocks of value, moments and
gradient (:mod:`fedrec.learn.kernel.vectors`): a layer is ``inputs`` rows of weights and one of biases, each padded with
zeros, which stay zero. A mini-batch goes through the layers some samples at a time, so that activations and weights
stay in the first cache. The users' half of the first layer is worked out once per user of a mini-batch.
"""

from __future__ import annotations

import math

import numpy as np
from numba import types

from fedrec.compiled import njit
from fedrec.learn.adam import DENSE_BELOW
from fedrec.learn.kernel.layers import TILE, add_row, copy_row, multiply_add
from fedrec.learn.kernel.plan import SCALE, SIZE, gap
from fedrec.learn.kernel.random import epoch_key, order
from fedrec.learn.kernel.scratch import largest
from fedrec.learn.kernel.signatures import flat, of_clients
from fedrec.learn.kernel.vectors import GRADIENT, LANES, STRIDE, adam_gap, adam_step, add_scaled, clear

AT_ONCE = 64
"""Scores that are worked out together."""

_ZERO, _ONE = np.float32(0), np.float32(1)


@njit(inline="always")
def _place(k):
    """Where number ``k`` of a row lies in its blocks."""
    return (k // LANES) * STRIDE + k % LANES


@njit(inline="always")
def _whole(width):
    """Blocks that hold ``width`` numbers."""
    return (width + LANES - 1) // LANES


@njit(error_model="numpy")
def _turn(state, weights, back, into, inputs, outputs):
    """Write a layer's weights the other way round, ``[outputs, inputs]``, for the way back."""
    for i in range(inputs):
        for o in range(outputs):
            back[into + o * LANES * _whole(inputs) + i] = state[weights + i * _whole(outputs) * STRIDE + _place(o)]


@njit(error_model="numpy")
def _forward(state, act, widths, net_at, act_at, tiles):
    """All layers but the users' half of the first, whose outputs are there already; rows of ``TILE`` samples."""
    layers = len(widths) - 1
    for layer in range(layers):
        blocks, inputs = _whole(widths[layer + 1]), LANES * _whole(widths[layer])
        here, there, row = act_at[layer], act_at[layer + 1], blocks * LANES
        if layer:
            bias = net_at[layer] + inputs * blocks * STRIDE
            for e in range(tiles * TILE):
                copy_row(act, there + e * row, LANES, state, bias, STRIDE, blocks)
        multiply_add(
            act, here, inputs, 1, state, net_at[layer], blocks * STRIDE, STRIDE,
            act, there, row, LANES, tiles, blocks, widths[layer],
        )  # fmt: skip
        if layer < layers - 1:
            out = act[there : there + tiles * TILE * row]
            for i in range(len(out)):
                out[i] = _ZERO if out[i] < _ZERO else out[i]


@njit(error_model="numpy")
def _backward(state, act, pull, back, widths, net_at, back_at, act_at, tiles, count):
    """From slopes at the scores to gradients of the weights and of the items; ``count`` rows are samples."""
    for layer in range(len(widths) - 2, -1, -1):
        blocks, into = _whole(widths[layer + 1]), _whole(widths[layer])
        inputs, row = LANES * into, LANES * blocks
        here, there = act_at[layer], act_at[layer + 1]
        multiply_add(
            act, here, 1, inputs, pull, there, row, LANES,
            state, net_at[layer] + GRADIENT, blocks * STRIDE, STRIDE, inputs // TILE, blocks, count,
        )  # fmt: skip
        if layer:
            bias = net_at[layer] + inputs * blocks * STRIDE + GRADIENT
            for e in range(count):
                add_row(state, bias, STRIDE, pull, there + e * row, LANES, blocks)
        found, seen = pull[here : here + tiles * TILE * inputs], act[here : here + tiles * TILE * inputs]
        found[:] = _ZERO
        multiply_add(
            pull, there, row, 1, back, back_at[layer], inputs, LANES,
            pull, here, inputs, LANES, tiles, into, widths[layer + 1],
        )  # fmt: skip
        if layer:
            for i in range(len(found)):
                found[i] = _ZERO if seen[i] <= _ZERO else found[i]


@njit(inline="always")
def _moved(state, at, blocks, rate, size, scale, adam):
    """One step of vectors that lie in a run."""
    if adam:
        adam_step(state, at, blocks, rate * size, scale)
    else:
        add_scaled(state, at, -rate, at + GRADIENT, blocks)


_F32, _YES = types.float32, types.boolean
_OWN = (
    types.Array(_F32, 2, "C", readonly=True), _YES, _F32[:, ::1], flat(types.int64),  # networks .. widths
    _F32, _F32, _F32, _F32, _YES, _YES, types.Array(types.float64, 2, "C", readonly=True),  # lr_users .. plan
)  # fmt: skip


@njit(of_clients("A", *_OWN), cache=True, nogil=True, error_model="numpy")
def train_clients(
    clients, start, user, row, negative, label,
    rows_start, rows_ids, user_start,
    table, personal, users, users_out, changes, loss, keys, epochs, batch,
    networks, own_networks, networks_out, widths, lr_users, lr_items, lr, decay, adam, pairs, plan,
):  # fmt: skip
    """Train the given clients; writes their users, item-row changes, network changes and last epoch's loss.

    ``networks`` ``[1 or clients, numbers]`` has per layer weights ``[inputs, outputs]``, then biases, all padded.
    ``widths`` are those of the layers, beginning with d: the first layer's weights are those of items, and behind all
    layers come those of users. ``plan`` is ``Schedule.stacked()`` for at least as many steps as any client makes.
    """
    d, layers = widths[0], len(widths) - 1
    blocks, hidden = _whole(d), _whole(widths[1])
    wide, broad, deep = blocks * STRIDE, blocks * LANES, hidden * LANES
    sides = 2 if pairs else 1
    most, most_users, most_samples = largest(clients, start, rows_start, user_start)
    most_users = (min(most_users, batch) + TILE - 1) // TILE * TILE

    # where layers begin among a client's vectors, turned, and in the activations
    net_at, back_at, act_at = (
        np.empty(layers + 1, np.int64),
        np.empty(layers + 1, np.int64),
        np.empty(layers + 1, np.int64),
    )
    net, turned, seen = most * wide, 0, 0
    for layer in range(layers + 1):
        net_at[layer], back_at[layer], act_at[layer] = net, turned, seen
        inputs = LANES * _whole(widths[layer])
        seen += AT_ONCE * inputs
        if layer < layers:
            net += (inputs + 1) * _whole(widths[layer + 1]) * STRIDE
            turned += LANES * _whole(widths[layer + 1]) * inputs
    net_users, net_first = net_at[layers], net_at[0]
    first_bias = net_first + broad * hidden * STRIDE
    net_blocks = (net_users - net_first) // STRIDE + broad * hidden

    # a client's vectors: its users first, then its item rows, then its network
    state = np.empty(net_first + net_blocks * STRIDE, np.float32)
    back = np.zeros(turned + deep * broad, np.float32)
    act, pull = np.zeros(seen, np.float32), np.zeros(seen, np.float32)
    # users of a mini-batch: their vectors and the first layer's outputs, with gradients
    people, people_pull = np.zeros(most_users * broad, np.float32), np.zeros(most_users * broad, np.float32)
    half, half_pull = np.zeros(most_users * deep, np.float32), np.zeros(most_users * deep, np.float32)
    last = np.empty(most, np.int32)  # step of the last gradient, 0 for none so far
    visited = np.empty(most, np.int32)  # position in this step's list belongs to this step
    listed, listed_users = np.empty(most, np.int32), np.empty(most_users, np.int32)
    spot = np.empty(most, np.int32)  # of a user among those of the mini-batch
    permuted = np.empty(most_samples + 1, np.uint32)

    for c in clients:
        first, n = start[c], start[c + 1] - start[c]
        row_0, n_rows = rows_start[c], rows_start[c + 1] - rows_start[c]
        user_0, n_users = user_start[c], user_start[c + 1] - user_start[c]
        at = c if personal else 0
        sparse = n_rows >= DENSE_BELOW * min(batch, n)
        state[: (n_users + n_rows) * wide] = _ZERO
        state[net_first:] = _ZERO
        for i in range(n_users + n_rows):
            for k in range(d):
                if i < n_users:
                    state[i * wide + _place(k)] = users[user_0 + i, k]
                else:
                    state[i * wide + _place(k)] = table[at, rows_ids[row_0 + i - n_users], k]
            last[i] = visited[i] = 0
        net_0 = c if own_networks else 0
        for k in range(networks.shape[1]):
            state[net_first + _place(k)] = networks[net_0, k]

        step = 0
        total_loss = 0.0
        for epoch in range(epochs):
            if n > 0:
                order(n, epoch_key(keys[c], epoch), permuted)
            for begin in range(0, n, batch):
                step += 1
                end = min(begin + batch, n)
                share = _ONE / np.float32(end - begin)
                # rows of this mini-batch are brought up to date; a client's users are few, and all make every step
                count, count_users = 0, 0
                clear(state, GRADIENT, n_users * blocks if sparse else (n_users + n_rows) * blocks)
                for j in range(begin, end):
                    sample = first + permuted[j]
                    u = np.int64(user[sample]) - user_0
                    if visited[u] != step:
                        visited[u] = step
                        spot[u] = count_users
                        listed_users[count_users] = u
                        count_users += 1
                    for side in range(sides if sparse else 0):
                        i = n_users + (negative[sample] if side else row[sample])
                        if visited[i] == step:
                            continue
                        visited[i] = step
                        listed[count] = i
                        count += 1
                        clear(state, i * wide + GRADIENT, blocks)
                        if adam and last[i] > 0 and last[i] < step - 1:
                            a, eps, decay_m, decay_s = gap(plan, last[i], step - 1)
                            adam_gap(state, i * wide, blocks, lr_items * a, eps, decay_m, decay_s)

                clear(state, net_first + GRADIENT, net_blocks)
                for layer in range(layers):
                    _turn(state, net_at[layer], back, back_at[layer], widths[layer], widths[layer + 1])
                _turn(state, net_users, back, turned, d, widths[1])
                for u in range(count_users):
                    copy_row(people, u * broad, LANES, state, listed_users[u] * wide, STRIDE, blocks)
                    copy_row(half, u * deep, LANES, state, first_bias, STRIDE, hidden)
                people_tiles = (count_users + TILE - 1) // TILE
                multiply_add(
                    people, 0, broad, 1, state, net_users, hidden * STRIDE, STRIDE,
                    half, 0, deep, LANES, people_tiles, hidden, d,
                )  # fmt: skip
                half_pull[: count_users * deep] = _ZERO

                for low in range(begin, end, AT_ONCE // sides):
                    high = min(low + AT_ONCE // sides, end)
                    scores = (high - low) * sides
                    tiles = (scores + TILE - 1) // TILE
                    for e in range(scores):
                        sample = first + permuted[low + e // sides]
                        i = n_users + (negative[sample] if e % sides else row[sample])
                        copy_row(act, e * broad, LANES, state, i * wide, STRIDE, blocks)
                        u = spot[np.int64(user[sample]) - user_0]
                        copy_row(act, act_at[1] + e * deep, LANES, half, u * deep, LANES, hidden)
                    _forward(state, act, widths, net_at, act_at, tiles)
                    for j in range(low, high):
                        e = act_at[layers] + (j - low) * sides * LANES
                        x = act[e] - act[e + LANES] if pairs else act[e]
                        y = _ONE if pairs else np.float32(label[first + permuted[j]])
                        if epoch == epochs - 1:
                            total_loss += max(x, _ZERO) - y * x + math.log1p(math.exp(-abs(x)))
                        pull[e] = (_ONE / (_ONE + np.exp(-x)) - y) * share
                        if pairs:
                            pull[e + LANES] = -pull[e]
                    _backward(state, act, pull, back, widths, net_at, back_at, act_at, tiles, scores)
                    for e in range(scores):
                        sample = first + permuted[low + e // sides]
                        i = n_users + (negative[sample] if e % sides else row[sample])
                        add_row(state, i * wide + GRADIENT, STRIDE, pull, e * broad, LANES, blocks)
                        u = spot[np.int64(user[sample]) - user_0]
                        add_row(half_pull, u * deep, LANES, pull, act_at[1] + e * deep, LANES, hidden)

                multiply_add(
                    people, 0, 1, broad, half_pull, 0, deep, LANES,
                    state, net_users + GRADIENT, hidden * STRIDE, STRIDE, broad // TILE, hidden, count_users,
                )  # fmt: skip
                people_pull[: count_users * broad] = _ZERO
                multiply_add(
                    half_pull, 0, deep, 1, back, turned, broad, LANES,
                    people_pull, 0, broad, LANES, people_tiles, blocks, widths[1],
                )  # fmt: skip
                for u in range(count_users):
                    add_row(state, first_bias + GRADIENT, STRIDE, half_pull, u * deep, LANES, hidden)
                    copy_row(state, listed_users[u] * wide + GRADIENT, STRIDE, people_pull, u * broad, LANES, blocks)

                size = np.float32(plan[SIZE, step]) if adam else _ONE
                scale = np.float32(plan[SCALE, step]) if adam else _ONE
                for l in range(count):
                    i = np.int64(listed[l])
                    last[i] = step
                    _moved(state, i * wide, blocks, lr_items, size, scale, adam)
                if not sparse:
                    _moved(state, n_users * wide, n_rows * blocks, lr_items, size, scale, adam)
                _moved(state, 0, n_users * blocks, lr_users, size, scale, adam)
                if decay:
                    add_scaled(state, net_first + GRADIENT, decay, net_first, net_blocks)
                _moved(state, net_first, net_blocks, lr, size, scale, adam)

        for i in range(n_users + n_rows):
            if adam and last[i] > 0 and last[i] < step:
                a, eps, decay_m, decay_s = gap(plan, last[i], step)
                adam_gap(state, i * wide, blocks, lr_items * a, eps, decay_m, decay_s)
            for k in range(d):
                if i < n_users:
                    users_out[user_0 + i, k] = state[i * wide + _place(k)]
                else:
                    r = row_0 + i - n_users
                    changes[r, k] = state[i * wide + _place(k)] - table[at, rows_ids[r], k]
        for k in range(networks.shape[1]):
            networks_out[c, k] = state[net_first + _place(k)] - networks[net_0, k]
        loss[c] = total_loss / n if n > 0 else 0.0
