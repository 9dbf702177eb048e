"""The three twins of keyed randomness give the same bits, and orders are permutations."""

from __future__ import annotations

from typing import Any

import numpy as np
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from numba import njit

from fedrec import keyed
from fedrec.learn import shuffle
from fedrec.learn.kernel import random as random_kernel
from fedrec.learn.torch import random as random_torch

KEYS = keyed.keys_of(range(50))


def words_by_kernel(keys: keyed.U64, count: int, first: int) -> keyed.U64:
    found = np.empty((len(keys), count), np.uint64)
    for i in range(len(keys)):
        for j in range(count):
            found[i, j] = random_kernel.word(keys[i], np.uint64(first + j))
    return found


def mix_by_kernel(values: keyed.U64) -> keyed.U64:
    return np.array([random_kernel.mix(value) for value in values])


def below_by_kernel(values: keyed.U64, n: int) -> keyed.U64:
    return np.array([random_kernel.below(value, n) for value in values])


_kernel_words: Any = njit(words_by_kernel)
_kernel_mix: Any = njit(mix_by_kernel)
_kernel_below: Any = njit(below_by_kernel)


def test_words_agree() -> None:
    want = keyed.words(KEYS, 7, 3)
    np.testing.assert_array_equal(_kernel_words(KEYS, 7, 3), want)
    found = random_torch.word(random_torch.from_words(KEYS)[:, None], torch.arange(3, 10)[None])
    np.testing.assert_array_equal(found.numpy().view(np.uint64), want)


def test_mix_agrees_on_extremes() -> None:
    values = np.array([0, 1, 2**63 - 1, 2**63, 2**64 - 1], np.uint64)
    want = keyed.mix(values)
    assert [int(w) for w in want] == [keyed.mix_int(int(v)) for v in values]
    np.testing.assert_array_equal(_kernel_mix(values), want)
    np.testing.assert_array_equal(random_torch.mix(random_torch.from_words(values)).numpy().view(np.uint64), want)


def test_below_agrees_and_stays_below() -> None:
    words = keyed.words(KEYS, 1)[:, 0]
    words[:2] = [0, 2**64 - 1]
    for n in (1, 3, 1682, 2**31 - 1):
        want = [(int(word) >> 32) * n >> 32 for word in words]
        assert max(want) < n
        np.testing.assert_array_equal(_kernel_below(words, n), want)
        found = random_torch.below(random_torch.from_words(words), torch.tensor(n))
        np.testing.assert_array_equal(found.numpy(), want)


@settings(max_examples=40, deadline=None, derandomize=True)
@given(counts=st.lists(st.integers(1, 700), min_size=1, max_size=5), epochs=st.integers(1, 3))
def test_orders_are_permutations_and_agree(counts: list[int], epochs: int) -> None:
    keys = KEYS[: len(counts)]
    flat = random_torch.orders(np.array(counts), random_torch.from_words(keys), epochs).numpy()
    at = 0
    for n, key in zip(counts, keys, strict=True):
        for epoch in range(epochs):
            stream = shuffle.epoch_key(int(key), epoch)
            order = shuffle.order(n, stream)
            np.testing.assert_array_equal(np.sort(order), np.arange(n))
            into = np.empty(n + 1, np.uint32)
            random_kernel.order(n, np.uint64(stream), into)
            np.testing.assert_array_equal(into[:n], order)
            np.testing.assert_array_equal(flat[at : at + n], order)
            at += n
    assert at == len(flat)


def test_orders_look_random() -> None:
    """Every sample is about equally often in the first quarter, and neighbours do not stay neighbours."""
    n, trials = 200, 2000
    early, together = np.zeros(n), 0
    for trial in range(trials):
        order = shuffle.order(n, keyed.stream(trial, "order"))
        early[order[: n // 4]] += 1
        together += int((np.abs(np.diff(order)) == 1).sum())
    spread = (early - trials / 4) / np.sqrt(trials * 0.25 * 0.75)
    assert np.abs(spread).max() < 6
    # a random permutation has about two such neighbours
    assert together / trials < 4


def test_epochs_and_clients_differ() -> None:
    first = shuffle.order(64, shuffle.epoch_key(int(KEYS[0]), 0))
    assert not np.array_equal(first, shuffle.order(64, shuffle.epoch_key(int(KEYS[0]), 1)))
    assert not np.array_equal(first, shuffle.order(64, shuffle.epoch_key(int(KEYS[1]), 0)))
