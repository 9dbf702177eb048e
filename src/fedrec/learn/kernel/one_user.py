"""The fused kernel's epochs of a client that holds one user (numba).

Such clients are most of all there are. Their rows' gradients are multiples of the user's vector, so none is stored: a
sample needs one pass, which sums the loss's slopes per row, and one Adam step per row does the rest. Every number is
computed in the order of the general case (:mod:`fedrec.learn.kernel.clients`), so both agree to the last bit.
"""

from __future__ import annotations

import math

import numpy as np

from fedrec.compiled import njit
from fedrec.learn.adam import BETA_1, BETA_2, EPS
from fedrec.learn.kernel.batch import adam_steps_of_one, dots, slopes_of
from fedrec.learn.kernel.plan import SCALE, SIZE, gap
from fedrec.learn.kernel.random import epoch_key, order
from fedrec.learn.kernel.vectors import GRADIENT, LANES, STRIDE, adam_gap, adam_step, add_scaled, clear

_BLOCK, _ROW_G, _USER = np.uint64(STRIDE), np.uint64(GRADIENT), np.uint64(0)
_B1, _B2 = np.float32(BETA_1), np.float32(BETA_2)
_C1, _C2 = np.float32(1 - BETA_1), np.float32(1 - BETA_2)
_EPS = np.float32(EPS)
_ZERO, _ONE = np.float32(0), np.float32(1)


@njit(error_model="numpy")
def train_one(
    own, row, negative, label, first, n, key, epochs, batch, lr_user, lr_items, adam, affine, pairs, b, blocks, plan,
):  # fmt: skip
    """All epochs of one user, whose vector is first in ``own.state``; gives the last epoch's loss and the new bias."""
    state, last, visited, listed, slopes = own.state, own.last, own.visited, own.listed, own.slopes
    stale, since, made, gaps = own.stale, own.since, own.made, own.gaps
    permuted, places, score, target = own.permuted, own.places, own.score, own.target
    wide = blocks * _BLOCK
    bm, bs = _ZERO, _ZERO
    step = 0
    total_loss = 0.0
    sides = 2 if pairs else 1
    made[:] = 0
    for epoch in range(epochs):
        if n > 0:
            order(n, epoch_key(key, epoch), permuted)
        for begin in range(0, n, batch):
            step += 1
            size_of_batch = min(batch, n - begin)
            groups = (size_of_batch + LANES - 1) // LANES
            share = _ONE / np.float32(size_of_batch)
            count = 0
            bg = _ZERO
            for j in range(size_of_batch):
                sample = first + permuted[begin + j]
                target[j] = _ONE if pairs else np.float32(label[sample])
                for side in range(sides):
                    i = 1 + (negative[sample] if side else row[sample])
                    o = np.uint64(i) * wide
                    places[side, j] = o
                    listed[count] = i  # written always, kept only at its first visit: no branch to mispredict
                    count += np.int64(visited[i] != step)
                    visited[i] = step
            behind = 0
            for l in range(count):
                i = listed[l]
                then, last[i], slopes[i] = last[i], step, _ZERO
                stale[behind], since[behind] = i, then
                behind += np.int64((then > 0) & (then < step - 1))
            if adam:
                for l in range(behind):
                    then = since[l]
                    if made[then] != step:  # rows that were left behind at one step share its constants
                        made[then] = step
                        gaps[then, 0], gaps[then, 1], gaps[then, 2], gaps[then, 3] = gap(plan, then, step - 1)
                        gaps[then, 0] *= lr_items
                    o = np.uint64(stale[l]) * wide
                    adam_gap(state, o, blocks, gaps[then, 0], gaps[then, 1], gaps[then, 2], gaps[then, 3])
            for side in range(sides):
                for j in range(size_of_batch, groups * LANES):
                    places[side, j] = _USER
                dots(state, _USER, places[side], groups, blocks, score[side])
            for j in range(size_of_batch):
                score[0, j] = score[0, j] - score[1, j] if pairs else b + score[0, j]
            if epoch == epochs - 1:
                for j in range(size_of_batch):
                    value = score[0, j]
                    total_loss += max(value, _ZERO) - target[j] * value + math.log1p(math.exp(-abs(value)))
            slopes_of(score[0], target, groups, share)
            for j in range(size_of_batch):
                sample = first + permuted[begin + j]
                slope = score[0, j]
                bg += slope
                slopes[1 + row[sample]] += slope
                if pairs:
                    slopes[1 + negative[sample]] -= slope
            size = np.float32(plan[SIZE, step]) if adam else _ONE
            scale = np.float32(plan[SCALE, step]) if adam else _ONE
            # rows before the user: their gradients are multiples of the user as it was
            if adam:
                adam_steps_of_one(state, listed, slopes, count, wide, blocks, lr_items * size, scale)
            else:
                clear(state, _ROW_G, blocks)
                for l in range(count):
                    i = listed[l]
                    o = np.uint64(i) * wide
                    add_scaled(state, _ROW_G, slopes[i], o, blocks)
                    add_scaled(state, o, -lr_items * slopes[i], _USER, blocks)
            last[0] = step
            if adam:
                adam_step(state, _USER, blocks, lr_user * size, scale)
            else:
                add_scaled(state, _USER, -lr_user, _ROW_G, blocks)
            if affine and not pairs:
                if adam:
                    bm = _B1 * bm + _C1 * bg
                    bs = np.sqrt(_B2 * bs * bs + _C2 * bg * bg)
                    b -= lr_user * size * bm / (bs * scale + _EPS)
                else:
                    b -= lr_user * bg
    return total_loss, b
