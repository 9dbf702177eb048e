"""A mini-batch as vector instructions, beside plain numpy."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from fedrec.compiled import njit
from fedrec.learn.kernel.batch import dots, slopes_of
from fedrec.learn.kernel.call import rows_in_one_run
from fedrec.learn.kernel.vectors import LANES, STRIDE, dot, placed


@njit()
def _slopes(score: Any, label: Any, groups: Any, share: Any) -> None:
    slopes_of(score, label, groups, share)  # type: ignore[call-arg]


@njit()
def _scores(state: Any, places: Any, groups: Any, blocks: Any, together: Any, alone: Any) -> None:
    dots(state, np.uint64(0), places, groups, blocks, together)  # type: ignore[call-arg]
    for j in range(len(places)):
        alone[j] = dot(state, np.uint64(0), places[j], blocks)


@njit()
def _placed(state: Any, offset: Any, source: Any, at: Any) -> None:
    placed(state, offset, source, at)  # type: ignore[call-arg]


def slopes(score: list[float], label: list[float], share: float = 1.0) -> NDArray[np.float32]:
    room = -len(score) % LANES
    values: NDArray[np.float32] = np.array(score + [0.0] * room, np.float32)
    labels = np.array(label + [0.0] * room, np.float32)
    _slopes(values, labels, len(values) // LANES, np.float32(share))
    return values[: len(score)]


def test_slopes_are_those_of_the_logistic_loss() -> None:
    score = np.concatenate([np.linspace(-30, 30, 4001), np.random.default_rng(0).normal(0, 3, 4000)]).astype(np.float32)
    label = (np.arange(len(score)) % 2).astype(np.float32)
    wanted = (1 / (1 + np.exp(-score.astype(np.float64))) - label) / 256
    found = slopes(score.tolist(), label.tolist(), 1 / 256)
    np.testing.assert_allclose(found, wanted, rtol=3e-7, atol=1.2e-7 / 256)


@pytest.mark.parametrize("score", [88.0, 104.0, 1e4, 3e38, float("inf")])
def test_scores_beyond_float32s_exponent_have_slopes_of_nothing_or_one(score: float) -> None:
    found = slopes([score, -score, score, -score], [1.0, 0.0, 0.0, 1.0])
    np.testing.assert_allclose(found, [0, 0, 1, -1], atol=1e-37)


def test_a_score_that_is_no_number_stays_none_and_harms_no_other() -> None:
    found = slopes([1.0, float("nan"), -1.0], [0.0, 0.0, 0.0])
    assert np.isnan(found[1])
    np.testing.assert_allclose(found[[0, 2]], [0.7310586, 0.26894143], rtol=1e-6)


@pytest.mark.parametrize("blocks", [1, 2, 3, 5])
def test_scores_made_together_are_those_made_alone_to_the_last_bit(blocks: int) -> None:
    rows = 40
    state = np.random.default_rng(blocks).normal(size=rows * blocks * STRIDE).astype(np.float32)
    places = np.random.default_rng(1).integers(0, rows, 3 * LANES).astype(np.uint64) * np.uint64(blocks * STRIDE)
    together, alone = np.empty(3 * LANES, np.float32), np.empty(3 * LANES, np.float32)
    _scores(state, places, 3, np.uint64(blocks), together, alone)
    np.testing.assert_array_equal(together, alone)


def test_a_row_is_placed_with_moments_of_zero() -> None:
    state = np.full(STRIDE, 7, np.float32)
    _placed(state, np.uint64(0), np.arange(2 * LANES, dtype=np.float32), LANES)
    np.testing.assert_array_equal(state[:LANES], np.arange(LANES, 2 * LANES))
    np.testing.assert_array_equal(state[LANES : 3 * LANES], 0)


def test_rows_with_gaps_between_their_numbers_are_copied_and_others_are_not() -> None:
    table = np.arange(60, dtype=np.float32).reshape(3, 20)
    assert np.shares_memory(rows_in_one_run(table[1:]), table)
    spread = table[:, ::2]
    np.testing.assert_array_equal(rows_in_one_run(spread), spread)
    assert rows_in_one_run(spread).flags.c_contiguous
