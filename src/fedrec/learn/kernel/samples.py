"""Drawing samples in one fused pass per client (numba)."""

from __future__ import annotations

import numpy as np

from fedrec.compiled import njit
from fedrec.core.block import Block
from fedrec.data.ragged import offsets
from fedrec.keyed import U64
from fedrec.learn.kernel.random import below, word
from fedrec.learn.sample_arrays import Samples, count
from fedrec.threads import over_pieces

_DE_BRUIJN = np.uint64(0x03F79D71B4CB0A89)
_ONE = np.uint64(1)


def _positions() -> np.ndarray:
    """Which bit a lone bit is, by its product with a de Bruijn number."""
    table = np.zeros(64, np.int32)
    for bit in range(64):
        table[(int(_DE_BRUIJN) << bit & (1 << 64) - 1) >> 58] = bit
    return table


_POSITION = _positions()


@njit(inline="always")
def _lowest(bits):
    """Position of the lowest bit that is set."""
    lone = bits & (~bits + _ONE)
    return _POSITION[(lone * _DE_BRUIJN) >> np.uint64(58)]


@njit(inline="always")
def _nth_free(exclude, first, last, rank):
    """The rank-th item outside the ascending list ``exclude[first:last]``."""
    low, high = first, last
    while low < high:
        middle = (low + high) >> 1
        if exclude[middle] - (middle - first) <= rank:
            low = middle + 1
        else:
            high = middle
    return rank + low - first


@njit(cache=True, nogil=True)
def _draw_clients(
    clients, n_items, pairs, user_start, train_start, train, exclude_start, exclude, each, keys, start,
    user, row, label, negative, rows_at, rows_count, rows_ids,
):  # fmt: skip
    # two levels of bits: one a set of items, one the words of it that are not empty
    bits = np.zeros((n_items >> 6) + 1, np.uint64)
    summary = np.zeros((n_items >> 12) + 1, np.uint64)
    position = np.empty(n_items, np.int32)
    six = np.uint64(63)
    for c in clients:
        at, index = start[c], np.uint64(0)
        for u in range(user_start[c], user_start[c + 1]):
            first, last = exclude_start[u], exclude_start[u + 1]
            free = n_items - (last - first)
            for i in range(train_start[u], train_start[u + 1]):
                if not pairs:
                    user[at], row[at], label[at] = u, train[i], 1
                    at += 1
                for _ in range(each[u]):
                    item = _nth_free(exclude, first, last, below(word(keys[c], index), free))
                    index += _ONE
                    user[at] = u
                    if pairs:
                        row[at], negative[at], label[at] = train[i], item, 1
                    else:
                        row[at], label[at] = item, 0
                    at += 1
        for side in range(2 if pairs else 1):
            taken = negative if side else row
            for s in range(start[c], start[c + 1]):
                item = np.uint64(taken[s])
                bits[item >> np.uint64(6)] |= _ONE << (item & six)
                summary[item >> np.uint64(12)] |= _ONE << (item >> np.uint64(6) & six)
        found, base = np.int32(0), rows_at[c]
        for high in range(len(summary)):
            rest = summary[high]
            summary[high] = 0
            while rest:
                group = (high << 6) + _lowest(rest)
                rest &= rest - _ONE
                inner = bits[group]
                bits[group] = 0
                while inner:
                    item = (group << 6) + _lowest(inner)
                    inner &= inner - _ONE
                    rows_ids[base + found] = item
                    position[item] = found
                    found += np.int32(1)
        rows_count[c] = found
        for side in range(2 if pairs else 1):
            taken = negative if side else row
            for s in range(start[c], start[c + 1]):
                taken[s] = position[taken[s]]


@njit(cache=True, nogil=True)
def _pack(source, source_start, target, target_start):
    """Move the filled beginnings of roomy segments together."""
    for c in range(len(target_start) - 1):
        from_, to = source_start[c], target_start[c]
        for i in range(target_start[c + 1] - to):
            target[to + i] = source[from_ + i]


def draw_kernel(block: Block, negatives: int, keys: U64, pairs: bool, threads: int | None) -> Samples:
    """The same samples as :func:`fedrec.learn.samples.draw_numpy`, client by client on all cores."""
    sizes = count(block, negatives, pairs)
    total = int(sizes.start[-1])
    user, row = np.empty(total, np.int32), np.empty(total, np.int32)
    label = np.empty(total, np.uint8)
    negative = np.empty(total if pairs else 0, np.int32)
    room = np.minimum(np.diff(sizes.start) * (2 if pairs else 1), block.n_items)
    rows_at = offsets(room)
    roomy = np.empty(rows_at[-1], np.int32)
    rows_count = np.zeros(block.n_clients, np.int64)
    arguments = (
        block.n_items, pairs, as_int64(block.user_start), as_int64(block.train.start),
        as_int32(block.train.values), as_int64(block.exclude.start), as_int32(block.exclude.values),
        as_int64(sizes.each), writable(keys, np.uint64), as_int64(sizes.start),
        user, row, label, negative, rows_at, rows_count, roomy,
    )  # fmt: skip
    over_pieces(_draw_clients, np.diff(sizes.start), arguments, threads)
    rows_start = offsets(rows_count)
    rows_ids = np.empty(rows_start[-1], np.int32)
    _pack(roomy, rows_at, rows_ids, rows_start)
    return Samples(
        start=sizes.start,
        user=user,
        row=row,
        label=label,
        negative=negative if pairs else None,
        rows_start=rows_start,
        rows_ids=rows_ids,
    )


def writable(array: np.ndarray, kind: type) -> np.ndarray:
    """An array of one fixed type: read-only or strided input would make numba compile once more."""
    return np.require(array, dtype=kind, requirements=["C", "W"])


def as_int64(array: np.ndarray) -> np.ndarray:
    return writable(array, np.int64)


def as_int32(array: np.ndarray) -> np.ndarray:
    return writable(array, np.int32)
