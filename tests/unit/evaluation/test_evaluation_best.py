"""Lists of the best items: the kernel and the plain form, masks, ties, and lists cut short."""

from __future__ import annotations

import numpy as np
import pytest
from evaluation_worlds import ragged

from fedrec.data.ragged import Ragged
from fedrec.evaluation.best import Best, best_of


def plainly(scores: np.ndarray, masked: Ragged, length: int, monkeypatch: pytest.MonkeyPatch) -> Best:
    with monkeypatch.context() as patch:
        patch.setattr("fedrec.evaluation.best.installed", lambda name: False)
        return best_of(scores, masked, length)


def test_masked_items_are_left_out_and_equal_scores_are_in_a_neutral_order() -> None:
    scores = np.array([[5, 1, 1, 1, 9, 1], [1, 1, 1, 1, 1, 1]], np.float32)
    best = best_of(scores, ragged([4], [0, 1, 2, 3]), 3)
    assert best.items[0, 0] == 0
    assert 4 not in best.items[0]
    assert best.values[0].tolist() == [5, 1, 1]
    assert sorted(best.items[1, :2].tolist()) == [4, 5]
    assert best.values[1].tolist() == [1, 1, -np.inf]
    assert best.level.tolist() == [4, 4]  # items 1, 2, 3 and 5; what is not ranked
    # equal scores: the same choice whatever their level, and not simply the first items
    constant = best_of(np.zeros((1, 200), np.float32), ragged([]), 10).items[0]
    assert sorted(constant.tolist()) != list(range(10))
    assert len(set(constant.tolist())) == 10


@pytest.mark.parametrize("spread", [3, 40, 0])
@pytest.mark.parametrize("length", [1, 7, 20, 300, 1000])
def test_kernel_and_plain_form_give_the_same_lists(spread: int, length: int, monkeypatch: pytest.MonkeyPatch) -> None:
    rng, users, items = np.random.default_rng(length + spread), 30, 300
    scores = rng.normal(size=(users, items)).astype(np.float32)
    if spread:  # few values: many are equal
        scores = np.floor(scores * spread / 3).astype(np.float32)
    rows = [rng.integers(0, items, size).tolist() for size in (0, 5, 299, 700, 0)] * 6  # some twice, most masked
    masked = ragged(*rows)
    before = scores.copy()
    fast, plain = best_of(scores, masked, length), plainly(scores, masked, length, monkeypatch)
    np.testing.assert_array_equal(scores, before)
    np.testing.assert_array_equal(fast.values, plain.values)
    np.testing.assert_array_equal(fast.level, plain.level)
    listed = fast.values > -np.inf
    np.testing.assert_array_equal(fast.items[listed], plain.items[listed])
    for shorter in {1, min(3, length), length}:
        cut, own = fast.first(shorter), best_of(scores, masked, shorter)
        np.testing.assert_array_equal(cut.values, own.values)
        np.testing.assert_array_equal(cut.level, own.level)
        np.testing.assert_array_equal(cut.items[cut.values > -np.inf], own.items[own.values > -np.inf])


@pytest.mark.parametrize("item", [3, -1, 2**31 - 1])
def test_a_masked_item_without_a_score_is_refused(item: int) -> None:
    with pytest.raises(IndexError, match="3 items have scores"):
        best_of(np.zeros((1, 3), np.float32), ragged([0, item]), 2)
