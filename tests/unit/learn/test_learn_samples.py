"""Samples: the same from every engine, negatives from outside, compact rows that fit."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from learn_reference import random_block

from fedrec import keyed
from fedrec.data.ragged import Int32, Int64, Ragged
from fedrec.errors import BadInput
from fedrec.learn.sample_arrays import Samples
from fedrec.learn.samples import draw, draw_numpy
from fedrec.learn.torch.samples import draw_torch


def items_of(samples: Samples, rows: Int32, client_of_user: Int64) -> Int32:
    """Item ids behind row positions."""
    found: Int32 = samples.rows_ids[samples.rows_start[client_of_user[samples.user]] + rows]
    return found


@settings(max_examples=40, deadline=None, derandomize=True)
@given(
    holdings=st.lists(st.lists(st.integers(0, 70), min_size=0, max_size=3), min_size=1, max_size=5),
    negatives=st.integers(0, 4),
    objective=st.sampled_from(["bce", "bpr"]),
    seed=st.integers(0, 100),
)
def test_engines_agree_and_samples_are_right(
    holdings: list[list[int]], negatives: int, objective: str, seed: int
) -> None:
    block = random_block(seed, holdings, n_items=70)
    keys = keyed.streams(seed, block.client_keys)
    samples = draw(block, negatives, keys, "kernel", objective, threads=2)
    for other in (
        draw_numpy(block, negatives, keys, objective == "bpr"),
        draw_torch(block, negatives, keys, objective == "bpr", "cpu").on_host(),
    ):
        for name in samples.__dataclass_fields__:
            mine, theirs = getattr(samples, name), getattr(other, name)
            assert (mine is None) == (theirs is None)
            if mine is not None:
                assert mine.dtype == theirs.dtype, name
                np.testing.assert_array_equal(mine, theirs, err_msg=name)

    of_user = block.client_of_user
    assert samples.start[-1] == len(samples.user) == len(samples.row)
    np.testing.assert_array_equal(of_user[samples.user], np.repeat(np.arange(len(holdings)), np.diff(samples.start)))
    first = items_of(samples, samples.row, of_user)
    drawn_by = samples.user if samples.pairs else samples.user[samples.label == 0]
    drawn = items_of(samples, samples.negative, of_user) if samples.pairs else first[samples.label == 0]
    for u in range(block.n_users):
        own = block.train[u]
        full = len(own) == 70
        positives = first[(samples.user == u) & (samples.label == 1)]
        repeats = negatives if samples.pairs else 1
        np.testing.assert_array_equal(positives, [] if samples.pairs and full else np.repeat(own, repeats))
        got = drawn[drawn_by == u]
        assert len(got) == (0 if full else negatives * len(own))
        assert not np.isin(got, block.exclude[u]).any()
    for c in range(len(holdings)):
        ids = samples.rows_ids[samples.rows_start[c] : samples.rows_start[c + 1]]
        at = slice(samples.start[c], samples.start[c + 1])
        used = [first[at]] + ([drawn[at]] if samples.pairs else [])
        np.testing.assert_array_equal(ids, np.unique(np.concatenate(used)))


def test_negatives_are_uniform_over_the_free_items() -> None:
    block = random_block(0, [[10]], 30)
    counts = np.zeros(30)
    for trial in range(300):
        samples = draw(block, 4, keyed.keys_of([f"trial {trial}"]))
        np.add.at(counts, items_of(samples, samples.row, block.client_of_user)[samples.label == 0], 1)
    assert (counts[block.train[0]] == 0).all()
    free = np.delete(counts, block.train[0])
    expected = 300 * 40 / 20
    # chi-square with 19 degrees of freedom: 43.8 at one in a thousand
    assert ((free - expected) ** 2 / expected).sum() < 43.8


def test_negatives_stay_outside_exclude_and_may_be_wider_than_train() -> None:
    block = random_block(1, [[5], [5]], 12)
    exclude = Ragged(np.array([0, 11, 22]), np.tile(np.arange(11, dtype=np.int32), 2))
    samples = draw(replace(block, exclude=exclude), 3, block.client_keys)
    assert set(items_of(samples, samples.row, block.client_of_user)[samples.label == 0]) == {11}


def test_more_than_a_word_of_items() -> None:
    """The bit sets have two levels; ids beyond 4096 use the second."""
    block = random_block(2, [[40], [3]], 20_000)
    samples, plain = draw(block, 4, block.client_keys), draw_numpy(block, 4, block.client_keys, False)
    np.testing.assert_array_equal(samples.rows_ids, plain.rows_ids)
    np.testing.assert_array_equal(samples.row, plain.row)


def test_unsorted_exclude_is_bad_input() -> None:
    block = random_block(3, [[3], [4]], 12)
    with pytest.raises(BadInput, match="ascend"):
        draw(replace(block, exclude=Ragged(block.train.start, block.train.values[::-1].copy())), 2, block.client_keys)


def test_unknown_objective_is_bad_input() -> None:
    block = random_block(3, [[3]], 12)
    with pytest.raises(BadInput, match="bce or bpr"):
        draw(block, 2, block.client_keys, objective="hinge")
