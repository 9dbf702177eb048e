"""Metrics: values by hand, against every order of tied scores, and chance."""

from __future__ import annotations

import itertools
import math

import numpy as np
import pytest
from evaluation_worlds import make_data, ragged
from hypothesis import given, settings
from hypothesis import strategies as st

from fedrec.errors import BadInput
from fedrec.evaluation.canary import chance
from fedrec.evaluation.evaluating import evaluate
from fedrec.evaluation.held import Held
from fedrec.evaluation.metrics import KINDS, Metric, MetricSet, parse
from fedrec.evaluation.protocols import PROTOCOLS, find
from fedrec.evaluation.sums import MetricSums

CUTS = (1, 2, 3, 5)
NAMES = MetricSet(tuple(f"{kind}@{cut}" for kind in KINDS for cut in CUTS))


def plain(order: list[int], targets: set[int], kind: str, k: int) -> float:
    """A metric of one ranked list, straight from its definition."""
    places = [place for place, item in enumerate(order[:k]) if item in targets]
    precision, recall = len(places) / k, len(places) / len(targets)
    if kind == "HR":
        return float(bool(places))
    if kind == "MRR":
        return 1 / (places[0] + 1) if places else 0.0
    if kind == "NDCG":
        ideal = sum(1 / math.log2(p + 2) for p in range(min(k, len(targets))))
        return sum(1 / math.log2(p + 2) for p in places) / ideal
    if kind == "F1":
        return 2 * precision * recall / (precision + recall) if places else 0.0
    return precision if kind == "Precision" else recall


def averaged(scores: np.ndarray, targets: set[int], ranked: list[int], kind: str, k: int) -> float:
    """The mean over all orders that the scores allow."""
    values = [
        plain(list(order), targets, kind, k)
        for order in itertools.permutations(ranked)
        if all(scores[a] >= scores[b] for a, b in itertools.pairwise(order))
    ]
    return sum(values) / len(values)


@settings(max_examples=60, deadline=None)
@given(
    scores=st.lists(st.integers(0, 2), min_size=6, max_size=6),
    roles=st.lists(st.sampled_from("tmn"), min_size=6, max_size=6),
)
def test_equals_the_mean_over_all_orders_of_ties(scores: list[int], roles: list[str]) -> None:
    targets = [i for i, role in enumerate(roles) if role == "t"]
    masked = [i for i, role in enumerate(roles) if role == "m"]
    array = np.array([scores, scores], np.float32)
    # the second user has two targets, so that the first goes through the general path even with a single one
    held = Held(ragged(targets, [0, 1]), ragged(masked, []))
    many = evaluate(array, held, NAMES)
    one = evaluate(array[:1], held.take(np.array([0])), NAMES)
    ranked = [i for i in range(6) if i not in masked]
    for metric in NAMES.metrics:
        if not targets:
            assert np.isnan(many[metric.name][0])
            continue
        expected = averaged(array[0], set(targets), ranked, metric.kind, metric.cut)
        assert many[metric.name][0] == pytest.approx(expected, abs=1e-12), metric
        assert one[metric.name][0] == pytest.approx(expected, abs=1e-12), metric


@settings(max_examples=40, deadline=None)
@given(
    scores=st.lists(st.integers(0, 2), min_size=8, max_size=8),
    drawn=st.lists(
        st.sampled_from([-1, 3, 4, 5, 6, 7]),
        min_size=3,
        max_size=3,
        unique_by=lambda i: i if i >= 0 else object(),
    ),
    n_targets=st.integers(1, 3),
)
def test_sampled_candidates_against_all_orders(scores: list[int], drawn: list[int], n_targets: int) -> None:
    array = np.array([scores], np.float32)
    targets = list(range(n_targets))
    names = MetricSet(tuple(f"{kind}@{cut}/3" for kind in KINDS for cut in CUTS))
    values = evaluate(array, Held(ragged(targets), ragged([]), np.array([drawn], np.int32)), names)
    ranked = targets + [i for i in drawn if i >= 0]
    for metric in names.metrics:
        expected = averaged(array[0], set(targets), ranked, metric.kind, metric.cut)
        assert values[metric.name][0] == pytest.approx(expected, abs=1e-12), metric


def test_one_target_by_hand() -> None:
    # target 3 has one item before it and shares its score with two others: places 2 to 4
    scores = np.array([[9, 5, 5, 5, 1]], np.float32)
    held = Held(ragged([3]), ragged([]))
    values = evaluate(scores, held, MetricSet(("HR@2", "HR@3", "NDCG@3", "MRR@3", "MRR@5", "Precision@2", "F1@2")))
    assert values["HR@2"][0] == pytest.approx(1 / 3)
    assert values["HR@3"][0] == pytest.approx(2 / 3)
    assert values["NDCG@3"][0] == pytest.approx((1 / math.log2(3) + 1 / math.log2(4)) / 3)
    assert values["MRR@3"][0] == pytest.approx((1 / 2 + 1 / 3) / 3)
    assert values["MRR@5"][0] == pytest.approx((1 / 2 + 1 / 3 + 1 / 4) / 3)
    assert values["Precision@2"][0] == pytest.approx(1 / 6)
    assert values["F1@2"][0] == pytest.approx(2 * (1 / 3) / 3)


def test_masked_items_are_not_ranked_and_scores_stay_as_they_were() -> None:
    scores = np.array([[9, 8, 7, 1], [9, 8, 7, 1]], np.float32)
    before = scores.copy()
    held = Held(ragged([2], [2, 3]), ragged([0, 1], [0]))
    values = evaluate(scores, held, MetricSet(("HR@1", "MRR@3", "Recall@2")))
    assert values["HR@1"].tolist() == [1.0, 0.0]
    assert values["MRR@3"].tolist() == [1.0, 0.5]
    assert values["Recall@2"].tolist() == [1.0, 0.5]
    assert (scores == before).all()


@pytest.mark.parametrize("protocol", sorted(PROTOCOLS))
@pytest.mark.parametrize("part", ["valid", "test"])
def test_a_constant_scorer_gets_exactly_chance(protocol: str, part: str) -> None:
    task = find(protocol).prepare(make_data(n_items=40), 0)
    metrics = MetricSet(tuple(m.name for m in task.protocol.metrics.metrics if not m.published))
    scores = np.full((task.data.n_users, task.data.n_items), 0.25, np.float32)
    means = MetricSums.from_values(evaluate(scores, task.held(part), metrics)).means()  # type: ignore[arg-type]
    for name in metrics.names:
        assert means[name] == pytest.approx(chance(task, part, name), abs=1e-12), name  # type: ignore[arg-type]


def test_chance_by_hand() -> None:
    data = make_data(n_users=4, n_items=150, per_user=3)
    task = find("strict").prepare(data, 0)  # all have three: one to train on, one for each part
    assert chance(task, "test", "HR@10/99") == pytest.approx(0.1)
    assert chance(task, "test", "HR@10") == pytest.approx(10 / 148)
    assert chance(task, "valid", "HR@10") == pytest.approx(10 / 149)
    with pytest.raises(BadInput, match="NDCG@10 instead"):
        chance(task, "test", "NDCG@10!")


def test_knowing_only_the_training_set_is_worth_chance_under_strict() -> None:
    task = find("strict").prepare(make_data(), 0)
    scores = np.zeros((task.data.n_users, task.data.n_items), np.float32)
    scores[task.train.owners, task.train.values] = 5.0
    means = MetricSums.from_values(evaluate(scores, task.held("test"), task.protocol.metrics)).means()
    for name in ("HR@10", "NDCG@20", "MRR@5", "HR@10/99", "NDCG@10/99"):
        assert means[name] == pytest.approx(chance(task, "test", name), abs=1e-12)


@pytest.mark.parametrize("bad", [np.nan, np.inf, -np.inf])
def test_scores_that_are_no_numbers_name_the_user(bad: float) -> None:
    scores = np.zeros((3, 4), np.float32)
    scores[1, 2] = bad
    with pytest.raises(BadInput, match=r"item 2 for the user at position 1"):
        evaluate(scores, Held(ragged([0], [0], [0]), ragged([], [], [])), NAMES)


def test_large_finite_scores_are_fine() -> None:
    for scores in (np.full((1, 5), 3e38, np.float32), np.full((1, 5), 1e308)):  # the latter's sum is infinite
        assert evaluate(scores, Held(ragged([0]), ragged([])), MetricSet(("HR@5",)))["HR@5"][0] == 1.0


def test_wrong_shapes_are_refused() -> None:
    held = Held(ragged([0]), ragged([]))
    with pytest.raises(ValueError, match="scores of 2 users"):
        evaluate(np.zeros((2, 4), np.float32), held, NAMES)
    with pytest.raises(ValueError, match="needs sampled candidates"):
        evaluate(np.zeros((1, 4), np.float32), held, MetricSet(("HR@1/99",)))


def test_nobody_to_evaluate() -> None:
    held = Held(ragged(), ragged())
    assert evaluate(np.zeros((0, 4), np.float32), held, NAMES)["HR@1"].shape == (0,)


def test_blocks_give_what_the_whole_gives() -> None:
    task = find("paper-fedcia").prepare(make_data(n_users=20), 0)
    scores = np.random.default_rng(0).integers(0, 9, (20, task.data.n_items)).astype(np.float32)
    held = task.held("test")
    whole = evaluate(scores, held, task.protocol.metrics)
    for user in range(20):
        alone = evaluate(scores[[user]], held.take(np.array([user])), task.protocol.metrics)
        for name, value in alone.items():
            np.testing.assert_allclose(value[0], whole[name][user], equal_nan=True)


def test_names() -> None:
    assert parse("HR@10/99") == Metric("HR", 10, 99)
    assert parse("MRR@10!").name == "MRR@10!"
    assert len(MetricSet.standard(99).names) == 36
    with pytest.raises(BadInput, match="did you mean 'Recall'"):
        parse("Recal@10")
    with pytest.raises(BadInput, match="not a metric"):
        parse("HR10")
    with pytest.raises(BadInput, match="unknown metric 'HR'"):
        parse("HR@10!")
