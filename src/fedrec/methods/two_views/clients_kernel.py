"""A step of Fed3CR and FedRAP on the CPU, one client after the other, each while its tables are in cache (numba).

The formulas are those of :mod:`fedrec.methods.two_views.closed`, whose names are used here.
"""

from __future__ import annotations

import math

import numpy as np

from fedrec.compiled import njit
from fedrec.methods.two_views.products_kernel import add_product
from fedrec.methods.two_views.rows_kernel import descend_rows, sample_slopes
from fedrec.methods.two_views.tables_kernel import (
    BLOCK,
    FAST,
    ONE,
    ZERO,
    clear,
    dot,
    move,
    rank,
    read,
    scale_into,
    widest_weight,
)


@njit(cache=True, nogil=True, error_model="numpy", fastmath=FAST)
def descend_clients(own, samples, matrix, plain, gain, views, own_views, found, room, weights, rates):
    """A step of every client on its tables, users and biases; fills ``found``.

    ``own``: ``shared`` and ``private`` ``[tables, m, d]``; ``place`` ``[clients]`` which of the tables are a client's;
    ``users`` ``[users, d]``; ``users_at`` ``[clients + 1]``; ``bias`` ``[users]``, or empty.
    ``samples`` ``[clients, width]``: ``where`` (a row of all tables), ``owner``, ``label``, ``weight`` of each.
    ``matrix`` ``[clients, d, d]`` is W, which is not read where ``plain`` says that it is the identity; ``gain``
    ``[clients]`` how far a step of the generator moves it; ``views`` and ``own_views`` ``[clients, d]`` are the
    prototypes. ``found``: each sample's loss ``[clients, width]``, gradients of W and of both prototypes.
    ``room`` for one client: ``C G`` ``[m, d]`` and six lists ``[6, m]``.
    """
    shared, private, place, users, users_at, bias = own
    where, owner, label, share_of_sample = samples
    each, to_matrix, to_views, to_own_views = found
    turned, lists = room
    beta_a, beta_o, length_scale, norm_floor, lambda_, mu = weights
    lr, rate, own_rate, lr_items, lr_transfer = rates
    m, d = shared.shape[1:]
    flat, own_flat = shared.reshape(-1, d), private.reshape(-1, d)
    people = np.empty((len(users), d), np.float32)  # W^T u
    to_shared, to_private = np.zeros((len(users), d), np.float32), np.zeros((len(users), d), np.float32)
    to_bias, slope = np.zeros(len(users), np.float32), np.empty(where.shape[1], np.float32)
    cross, weighed, gram = np.empty((d, d), np.float32), np.empty((d, d), np.float32), np.empty((d, d), np.float32)
    mapped, back, turn = np.empty((d, d), np.float32), np.empty((d, d), np.float32), np.empty((d, d), np.float32)
    own_turn, target = np.empty((d, d), np.float32), np.empty((1, d), np.float32)
    carried, own_carried = np.empty((1, d), np.float32), np.empty((1, d), np.float32)
    fresh = np.empty((BLOCK, d), np.float32)
    ranking, orthogonal, sparse = beta_a != 0, beta_o != 0, mu != 0
    floor = np.float32(norm_floor)
    share = 2 * lambda_ / (m * d)
    for c in range(len(views)):
        tables, own_tables, view, own_view = shared[place[c]], private[place[c]], views[c], own_views[c]
        transfer = matrix[c]
        scale_into(target, views[c : c + 1], ONE)
        if ranking and not plain:
            clear(gram)
            clear(target)
            add_product(gram, transfer.T, transfer)
            add_product(target, views[c : c + 1], gram)
        size = read(tables, own_tables, gram, target[0], own_view, ranking, orthogonal, plain, turned, cross, lists)

        # recommendation (Eq. 7, 11-13) on the rows of the mini-batch
        first, last = users_at[c], users_at[c + 1]
        scale_into(people[first:last], users[first:last], ONE)
        if not plain:
            clear(people[first:last])
            add_product(people[first:last], users[first:last], transfer)
        sample_slopes(
            flat, own_flat, where[c], owner[c], label[c], share_of_sample[c],
            users, people, bias, each[c], slope, to_shared, to_private, to_bias,
        )  # fmt: skip
        for u in range(first, last):  # to_private becomes the user's gradient
            for i in range(d):
                to_private[u, i] += to_shared[u, i] if plain else dot(transfer[i], to_shared[u])
        if not plain:
            clear(to_matrix[c])
            add_product(to_matrix[c], users[first:last].T, to_shared[first:last])

        # what whole tables descend along, worked out before either changes
        reach, own_reach, pull, own_pull = np.float32(1), np.float32(1), ZERO, ZERO
        if ranking:
            reach = max(np.float32(math.sqrt(max(dot(target[0], view), ZERO))), floor)
            own_reach = max(np.float32(math.sqrt(dot(own_view, own_view))), floor)
            pull, own_pull = rank(lists, reach, own_reach, floor, np.float32(length_scale), np.float32(beta_a))
        if orthogonal:
            largest = widest_weight(size, transfer, cross, gain[c], plain, lr_items, lr_transfer)
            weight = min(largest, beta_o) * 2 / d
            scale_into(back, cross, ONE)
            if not plain:
                clear(mapped)
                clear(back)
                add_product(mapped, transfer, cross)
                add_product(back, transfer.T, mapped)  # G K
                scale_into(weighed, cross.T, np.float32(weight))
                add_product(to_matrix[c], mapped, weighed)
            scale_into(turn, back.T, np.float32(-rate * weight))
            scale_into(own_turn, back, np.float32(-own_rate * weight))
        clear(weighed)
        clear(carried)
        clear(own_carried)
        for begin in range(0, m if ranking or orthogonal or share or sparse else 0, BLOCK):
            rows = slice(begin, min(begin + BLOCK, m))
            move(
                tables[rows], own_tables[rows], tables[rows] if plain else turned[rows], target[0], own_view,
                lists[0][rows], lists[1][rows], lists[2][rows], lists[3][rows],
                ranking, orthogonal, plain, turn, own_turn, weighed, carried, own_carried,
                fresh[: rows.stop - begin], np.float32(rate), np.float32(own_rate), np.float32(1 / own_reach),
                np.float32(rate * share), np.float32(own_rate * share), np.float32(rate * mu / (m * d)),
            )  # fmt: skip
        for k in range(d):
            to_views[c, k], to_own_views[c, k] = ZERO, ZERO
        if ranking:
            for k in range(d):
                to_own_views[c, k] = (own_carried[0, k] - own_pull * own_view[k] / own_reach) / own_reach
                to_views[c, k] = -pull * target[0, k] + (carried[0, k] if plain else ZERO)
            if not plain:
                add_product(to_views[c : c + 1], carried, gram)
                for i in range(d):  # the gradient of G
                    for k in range(d):
                        both = carried[0, i] * view[k] + carried[0, k] * view[i]
                        back[i, k] = both - weighed[i, k] - pull * view[i] * view[k]
                add_product(to_matrix[c], transfer, back)

        descend_rows(
            flat, own_flat, where[c], owner[c], slope, users, people,
            np.float32(rate), np.float32(own_rate),
        )  # fmt: skip
        for u in range(first, last):
            for k in range(d):
                users[u, k] -= np.float32(lr) * to_private[u, k]
            if len(bias):
                bias[u] -= np.float32(lr) * to_bias[u]
