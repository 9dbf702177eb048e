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
from fedrec.learn.kernel.plan import SCALE, SIZE, gap
from fedrec.learn.kernel.random import epoch_key, order
from fedrec.learn.kernel.vectors import GRADIENT, STRIDE, adam_gap, adam_step, adam_step_of_one, add_scaled, clear, dot

_BLOCK, _ROW_G, _USER = np.uint64(STRIDE), np.uint64(GRADIENT), np.uint64(0)
_B1, _B2 = np.float32(BETA_1), np.float32(BETA_2)
_C1, _C2 = np.float32(1 - BETA_1), np.float32(1 - BETA_2)
_EPS = np.float32(EPS)
_ZERO, _ONE = np.float32(0), np.float32(1)


@njit(error_model="numpy")
def train_one(
    state, last, visited, listed, slopes, permuted, row, negative, label,
    first, n, key, epochs, batch, lr_user, lr_items, adam, affine, pairs, b, blocks, plan,
):  # fmt: skip
    """All epochs of one user, whose vector is first in ``state``; gives the last epoch's loss and the new bias."""
    wide = blocks * _BLOCK
    bm, bs = _ZERO, _ZERO
    step = 0
    total_loss = 0.0
    for epoch in range(epochs):
        if n > 0:
            order(n, epoch_key(key, epoch), permuted)
        for begin in range(0, n, batch):
            step += 1
            end = min(begin + batch, n)
            share = _ONE / np.float32(end - begin)
            count = 0
            bg = _ZERO
            clear(state, _ROW_G, blocks)
            for j in range(begin, end):
                sample = first + permuted[j]
                value = _ZERO if pairs else b
                for side in range(2 if pairs else 1):
                    i = 1 + (negative[sample] if side else row[sample])
                    o = np.uint64(i) * wide
                    if visited[i] != step:
                        visited[i] = step
                        listed[count] = i
                        count += 1
                        slopes[i] = _ZERO
                        if adam and last[i] > 0 and last[i] < step - 1:
                            a, eps, decay_m, decay_s = gap(plan, last[i], step - 1)
                            adam_gap(state, o, blocks, lr_items * a, eps, decay_m, decay_s)
                    got = dot(state, _USER, o, blocks)
                    value = value - got if side else value + got
                y = _ONE if pairs else np.float32(label[sample])
                if epoch == epochs - 1:
                    total_loss += max(value, _ZERO) - y * value + math.log1p(math.exp(-abs(value)))
                slope = (_ONE / (_ONE + np.exp(-value)) - y) * share
                bg += slope
                slopes[1 + row[sample]] += slope
                if pairs:
                    slopes[1 + negative[sample]] -= slope
            size = np.float32(plan[SIZE, step]) if adam else _ONE
            scale = np.float32(plan[SCALE, step]) if adam else _ONE
            # rows before the user: their gradients are multiples of the user as it was
            for l in range(count):
                i = listed[l]
                o = np.uint64(i) * wide
                last[i] = step
                if adam:
                    adam_step_of_one(state, o, _USER, slopes[i], blocks, lr_items * size, scale)
                else:
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
