"""FedCIA's metrics as published: order lost, and divided by what was found."""

from __future__ import annotations

import math

import numpy as np
import pytest
from evaluation_worlds import ragged
from hypothesis import given
from hypothesis import strategies as st

from fedrec.evaluation.evaluating import evaluate
from fedrec.evaluation.held import Held
from fedrec.evaluation.metrics import MetricSet
from fedrec.evaluation.published import enumerated
from fedrec.evaluation.sums import MetricSums

SET = MetricSet(("Precision@10", "Recall@10", "F1@10", "F1@10!", "MRR@10!", "NDCG@10!", "MRR@10", "NDCG@10"))


@given(st.lists(st.integers(0, 5000), min_size=10, max_size=10, unique_by=lambda item: item % 32))
def test_a_set_of_ten_is_walked_by_the_number_modulo_32(items: list[int]) -> None:
    assert enumerated(items) == sorted(items, key=lambda item: item % 32)


def test_order_is_lost_and_ndcg_is_divided_by_the_hits_found() -> None:
    # best ten are items 31, 30, ... 22; a set walks them from 22 up, so the item ranked last comes first
    scores = np.arange(32, dtype=np.float32)[None, :]
    held = Held(ragged([22, 0, 1]), ragged([]))
    values = evaluate(scores, held, SET)
    assert values["MRR@10"][0] == pytest.approx(0.1)
    assert values["MRR@10!"][0] == 1.0
    assert values["NDCG@10!"][0] == 1.0
    ideal = sum(1 / math.log2(p + 2) for p in range(3))
    assert values["NDCG@10"][0] == pytest.approx(1 / math.log2(11) / ideal)
    assert evaluate(scores, Held(ragged([30, 24]), ragged([])), SET)["NDCG@10!"][0] == pytest.approx(
        (1 / math.log2(4) + 1 / math.log2(10)) / (1 + 1 / math.log2(3))
    )


def test_cuts_do_not_mix() -> None:
    scores = np.arange(32, dtype=np.float32)[None, :]
    values = evaluate(scores, Held(ragged([24]), ragged([])), MetricSet(("MRR@5!", "MRR@10!")))
    assert values["MRR@5!"][0] == 0.0  # items 31 to 27 only
    assert values["MRR@10!"][0] == pytest.approx(1 / 3)  # after 22 and 23


def test_the_datas_own_numbers_are_what_is_hashed() -> None:
    scores = np.arange(32, dtype=np.float32)[None, :]
    reversed_ids = np.arange(32)[::-1].copy()  # item 31 has number 0, item 22 number 9
    held = Held(ragged([22]), ragged([]), numbers=reversed_ids)
    assert evaluate(scores, held, SET)["MRR@10!"][0] == pytest.approx(0.1)


def test_no_hit_and_no_target() -> None:
    scores = np.tile(np.arange(32, dtype=np.float32), (2, 1))
    values = evaluate(scores, Held(ragged([0], []), ragged([], [])), SET)
    for name in ("MRR@10!", "NDCG@10!", "F1@10!"):
        assert values[name][0] == 0.0
        assert np.isnan(values[name][1])


def test_published_f1_is_that_of_the_means() -> None:
    scores = np.tile(np.arange(32, dtype=np.float32), (2, 1))
    values = evaluate(scores, Held(ragged([31], [30, 29, 28, 0]), ragged([], [])), SET)
    means = MetricSums.from_values(values).means()
    precision, recall = (0.1 + 0.3) / 2, (1.0 + 0.75) / 2
    assert means["F1@10!"] == pytest.approx(2 * precision * recall / (precision + recall))
    assert means["F1@10"] == pytest.approx((2 * 1 / 11 + 2 * 3 / 14) / 2)
    assert values["F1@10!"].tolist() == pytest.approx(values["F1@10"].tolist())
    nothing = MetricSums.from_values(evaluate(-scores, Held(ragged([31], [30]), ragged([], [])), SET))
    assert nothing.means()["F1@10!"] == 0.0
