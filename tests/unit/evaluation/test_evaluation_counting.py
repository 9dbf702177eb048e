"""The pass over the scores in compiled code gives what the plain formulas give, to the last digit."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

from fedrec.data.ragged import Ragged, offsets
from fedrec.errors import BadInput
from fedrec.evaluation.counting import Counting
from fedrec.evaluation.evaluating import evaluate, evaluate_parts
from fedrec.evaluation.held import Held
from fedrec.evaluation.metrics import MetricSet

METRICS = MetricSet.standard(candidates=7)


def lists(rng: np.random.Generator, users: int, items: int, most: int) -> Ragged:
    counts = rng.integers(0, most + 1, users)
    chosen = [np.sort(rng.choice(items, count, replace=False)) for count in counts]
    return Ragged(offsets(counts), np.concatenate([*chosen, np.zeros(0, np.int64)]).astype(np.int32))


def held(rng: np.random.Generator, users: int, items: int, most: int = 1) -> Held:
    drawn = rng.integers(-1, items, (users, 7)).astype(np.int32)
    return Held(lists(rng, users, items, most), lists(rng, users, items, items // 2), drawn)


@given(seed=st.integers(0, 10**6), users=st.integers(1, 40), items=st.integers(3, 80), levels=st.integers(1, 200))
@settings(max_examples=60, deadline=None)
def test_one_pass_equals_the_plain_formulas(seed: int, users: int, items: int, levels: int) -> None:
    """Few levels make many ties; a user may lack a target in either part."""
    rng = np.random.default_rng(seed)
    scores: NDArray[np.float32] = (rng.integers(0, levels, (users, items)) / levels - 0.5).astype(np.float32)
    parts = {"valid": held(rng, users, items), "test": held(rng, users, items)}
    found = evaluate_parts(scores, parts, METRICS)
    for part, own in parts.items():
        wanted = evaluate(scores, own, METRICS)
        assert list(found[part]) == list(wanted)
        for name, values in wanted.items():
            np.testing.assert_array_equal(found[part][name], values, err_msg=f"{part} {name}")
    alone = evaluate_parts(scores, {"test": parts["test"]}, METRICS)["test"]
    np.testing.assert_array_equal(alone["NDCG@10"], found["test"]["NDCG@10"])


def test_pieces_in_any_order_give_what_the_whole_gives() -> None:
    rng = np.random.default_rng(3)
    scores = rng.integers(0, 6, (23, 40)).astype(np.float32)
    parts = [held(rng, 23, 40), held(rng, 23, 40)]
    whole, pieces = Counting(parts, METRICS), Counting(parts, METRICS)
    whole.add(np.arange(23), scores)
    order = rng.permutation(23)
    for some in (order[:9], order[9:10], order[10:20]):
        pieces.add(some, scores[some])
    for all_, found in zip(whole.values(), pieces.values(), strict=True):
        for name, values in all_.items():
            np.testing.assert_array_equal(found[name][order[:20]], values[order[:20]])
            assert np.isnan(found[name][order[20:]]).all()  # not scored yet
    scores[7, 5] = np.nan
    with pytest.raises(BadInput, match="item 5 for the user at position 7"):
        pieces.add(np.array([2, 7]), scores[[2, 7]])


def test_several_targets_take_the_general_way() -> None:
    rng = np.random.default_rng(1)
    scores = rng.standard_normal((9, 30)).astype(np.float32)
    parts = {"valid": held(rng, 9, 30, 4), "test": held(rng, 9, 30, 1)}
    found = evaluate_parts(scores, parts, METRICS)
    np.testing.assert_array_equal(found["valid"]["Recall@5"], evaluate(scores, parts["valid"], METRICS)["Recall@5"])


@pytest.mark.parametrize("bad", [np.nan, np.inf, -np.inf])
def test_a_score_that_is_not_finite_is_refused(bad: float) -> None:
    rng = np.random.default_rng(2)
    scores = rng.standard_normal((5, 12)).astype(np.float32)
    scores[3, 4] = bad
    with pytest.raises(BadInput, match="item 4 for the user at position 3"):
        evaluate_parts(scores, {"test": held(rng, 5, 12)}, METRICS)
