"""Protocols: flags, prose, selection, dropped users, and sums."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from evaluation_worlds import make_data

from fedrec.data.interactions import TEST, TRAIN, Interactions
from fedrec.errors import BadInput
from fedrec.evaluation.protocols import PROTOCOLS, find
from fedrec.evaluation.rules import Selection
from fedrec.evaluation.sums import MetricSums


def test_strict_has_no_flaws_and_the_others_own_up() -> None:
    strict = find("strict")
    assert (strict.negatives, strict.evaluated, strict.selection.part, strict.flaws) == (
        "train",
        "download",
        "valid",
        (),
    )
    assert not strict.leaky
    assert strict.paper is None
    assert not find("strict-new-users").leaky
    for name in sorted(set(PROTOCOLS) - {"strict", "strict-new-users"}):
        protocol = find(name)
        assert protocol.flaws
        assert protocol.paper == name.removeprefix("paper-")
        said = " ".join(protocol.flaws)
        assert protocol.leaky == ("never pushed down" in said)
        assert (protocol.selection.part == "test") == ("best of many tries" in said)
        assert (protocol.evaluated == "local") == ("after local training" in said)
        assert protocol.drop_unseen_targets == ("are dropped" in said)


def test_which_paper_does_what() -> None:
    assert {n for n, p in PROTOCOLS.items() if p.leaky} == {"paper-fedca", "paper-fed3cr", "paper-fediar"}
    assert {n for n, p in PROTOCOLS.items() if p.selection.part == "test"} == {"paper-fedca", "paper-fed3cr"}
    assert {n for n, p in PROTOCOLS.items() if p.drop_unseen_targets} == {"paper-feddae"}
    assert find("paper-fedcia").selection.patience == 10
    assert set(find("paper-fedcia").metrics.names) >= {
        "F1@10",
        "F1@10!",
        "MRR@10",
        "MRR@10!",
        "NDCG@10",
        "NDCG@10!",
    }
    for protocol in PROTOCOLS.values():
        assert protocol.selection.metric in protocol.metrics.names


def test_prose_is_printable() -> None:
    for protocol in PROTOCOLS.values():
        text = protocol.prose(80)
        assert text.startswith(protocol.name)
        assert max(map(len, text.splitlines())) <= 80
        assert text.count("Flaw ") == len(protocol.flaws)
    assert "none known" in find("strict").prose()


def test_unknown_names_get_the_nearest() -> None:
    with pytest.raises(BadInput, match="did you mean 'paper-fedca'"):
        find("paper-fedac")


def test_parts_cover_the_data_once() -> None:
    data = make_data()
    for protocol in PROTOCOLS.values():
        task = protocol.prepare(data, 0)
        held = len(task.train.values) + len(task.valid.values) + len(task.test.values)
        assert held == len(data) or (protocol.drop_unseen_targets and held < len(data))


def test_masks() -> None:
    data = make_data()
    for name, hidden in (("strict", True), ("paper-feddae", False)):
        task = find(name).prepare(data, 0)
        valid, test = task.held("valid"), task.held("test")
        for user in range(data.n_users):
            trained = set(task.train[user].tolist())
            assert set(valid.masked[user].tolist()) == trained
            assert set(test.masked[user].tolist()) == trained | (set(task.valid[user].tolist()) if hidden else set())


def test_feddae_drops_test_items_that_nobody_trained_on() -> None:
    users = np.array([0, 0, 0, 1, 1, 1], np.int32)
    items = np.array([0, 1, 2, 1, 0, 0], np.int32)
    items[5] = 3  # nobody else has it
    items[2] = 1
    items[1] = 2
    data = Interactions("x", users, items, np.array(["a", "b"]), np.arange(4).astype(str), times=np.arange(6))
    task = find("paper-feddae").prepare(data, 0)
    assert task.test.counts.tolist() == [1, 0]
    assert find("strict").prepare(data, 0).test.counts.tolist() == [1, 1]


def test_item_numbers_only_where_ids_are_numbers() -> None:
    data = make_data()
    task = find("paper-fedcia").prepare(data, 0)
    assert task.held("test").numbers is not None
    assert task.held("test").numbers.tolist() == [100 + i for i in range(data.n_items)]  # type: ignore[union-attr]
    named = replace(data, item_ids=np.array([f"item {i}" for i in range(data.n_items)]))
    assert find("paper-fedcia").prepare(named, 0).held("test").numbers is None
    assert find("strict").prepare(data, 0).held("test").numbers is None


def test_users_without_targets_do_not_count() -> None:
    data = make_data()
    part = np.full(len(data), TRAIN, np.int8)
    part[data.user_start[1]] = TEST
    task = find("strict").prepare(replace(data, part=part), 0)
    assert task.test.counts.sum() == 1
    assert MetricSums.from_values({"HR@10": np.array([np.nan, 1.0, np.nan])}).count == 1


def test_selection() -> None:
    history = [{"A": 0.1}, {"A": 0.3}, {"A": float("nan")}, {"A": 0.3}, {"A": 0.2}]
    assert Selection("valid", "A").best(history) == 1
    assert Selection("valid", "A").best([{"A": float("nan")}, {"A": 0.0}]) == 1
    assert not Selection("valid", "A").stop(history)
    assert Selection("valid", "A", patience=3).stop(history)
    assert not Selection("valid", "A", patience=4).stop(history)
    assert not Selection("valid", "A", patience=1).stop([])


def test_sums_add_up_and_round_trip() -> None:
    left = MetricSums.from_values({"HR@10": np.array([1.0, np.nan, 0.0]), "MRR@10": np.array([0.5, np.nan, 0.0])})
    right = MetricSums.from_values({"HR@10": np.array([1.0]), "MRR@10": np.array([0.25])})
    both = left + right
    assert both.count == 3
    assert both.means() == pytest.approx({"HR@10": 2 / 3, "MRR@10": 0.25})
    assert MetricSums.from_dict(both.as_dict()) == both
    assert MetricSums() + both == both == both + MetricSums()
    assert MetricSums.from_values({}) == MetricSums()
    assert np.isnan(MetricSums.from_values({"HR@10": np.array([np.nan])}).means()["HR@10"])
    with pytest.raises(ValueError, match="different metrics"):
        both + MetricSums({"HR@5": 1.0}, 1)
