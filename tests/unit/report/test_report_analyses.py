"""The analyses: thinner training data, what counts as found in training, and the files they leave."""

from __future__ import annotations

import csv
import io
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from fedrec.data.load import load
from fedrec.errors import BadInput
from fedrec.evaluation.protocols import find as find_protocol
from fedrec.evaluation.task import thinned
from fedrec.experiment.analyses.points import Point
from fedrec.experiment.analyses.skew import last_trained, skew
from fedrec.experiment.analyses.weights import weights
from fedrec.experiment.prepare import prepare
from fedrec.experiment.resolve import resolve
from fedrec.report.figures.analyses import curves, heat_maps, matrix_csv, points_csv
from fedrec.report.figures.files import save


@pytest.fixture(scope="module")
def task() -> Any:
    return find_protocol("strict").prepare(load("demo"), 0)


def test_thinner_data_are_subsets_in_time_order(task: Any) -> None:
    before = task
    for share in (0.6, 0.3, 0.1):
        thin = thinned(task, share)
        np.testing.assert_array_equal(thin.train.counts, np.maximum(np.round(share * task.train.counts), 1).astype(int))
        for user in range(len(task.train)):
            kept = [item for item in task.train[user] if item in set(thin.train[user])]
            assert kept == list(thin.train[user])  # a subset, in the same order
            assert set(thin.train[user]) <= set(before.train[user])  # of what a larger share keeps
            assert list(thin.exclude[user]) == sorted(thin.train[user])
        before = thin
    assert thinned(task, 1.0) is task


def test_a_leaky_protocol_stays_leaky_when_thinned() -> None:
    leaky = find_protocol("paper-fedca").prepare(load("demo"), 0)
    assert thinned(leaky, 0.5).exclude is leaky.exclude


@pytest.mark.parametrize("share", [0.0, 1.2])
def test_a_share_is_a_share(task: Any, share: float) -> None:
    with pytest.raises(BadInput, match="above 0 and at most 1"):
        thinned(task, share)


def test_the_last_training_item_is_what_training_is_evaluated_on() -> None:
    prepared = prepare(resolve("fedavg", {"data": "demo", "rounds": 1}))
    held = last_trained(prepared)
    train = prepared.task.train.take(prepared.people.users)
    assert held.candidates is not None
    for user in range(len(train)):
        assert list(held.targets[user]) == [train[user][-1]]
        assert list(held.masked[user]) == sorted(train[user][:-1])
        assert not set(held.candidates[user]) & set(train[user])


def test_skew_gives_train_and_test_for_every_number_of_neighbours() -> None:
    points = skew({"data": "demo", "rounds": 1, "settings": {"dim": 4, "epochs": 1}}, [5, 10])
    found = {(p.x, p.series) for p in points if p.metric == "HR@10/99"}
    assert found == {(5.0, "train"), (5.0, "test"), (10.0, "train"), (10.0, "test")}
    assert all(0 <= p.value <= 1 for p in points)
    with pytest.raises(BadInput, match="ask for at most"):
        skew({"data": "demo", "rounds": 1, "settings": {"dim": 4, "epochs": 1}}, [100_000])


def test_weights_are_rows_of_a_distribution_between_the_clients_shown() -> None:
    found = weights({"data": "demo", "rounds": 1, "settings": {"dim": 4, "epochs": 1}}, 6)
    assert len(set(found.clients)) == 6
    np.testing.assert_allclose(found.similarity, found.similarity.T, atol=1e-6)
    np.testing.assert_allclose(np.diag(found.similarity), 1)
    assert (found.composite >= 0).all()
    assert (found.composite.sum(1) <= 1 + 1e-5).all()  # the rest of each row goes to clients that are not shown


def test_files_can_be_read_back(tmp_path: Path) -> None:
    points = [Point(0.5, "fcf", "HR@10", 0.25), Point(1.0, "fcf", "HR@10", 0.5)]
    rows = list(csv.reader(io.StringIO(points_csv(points, "share", "method"))))
    assert rows == [
        ["share", "method", "metric", "value"],
        ["0.5", "fcf", "HR@10", "0.250000"],
        ["1", "fcf", "HR@10", "0.500000"],
    ]
    save(curves(points, "title", "about", "share", ["HR@10"]), tmp_path / "curves.png")
    matrix = np.array([[1.0, 0.2], [0.3, 1.0]])
    assert "W,a,b,0.20000000" in matrix_csv(["a", "b"], {"W": matrix})
    save(heat_maps(["a", "b"], {"W": matrix}, "title", "about"), tmp_path / "map.png")
    assert all((tmp_path / name).stat().st_size > 1000 for name in ("curves.png", "map.png"))
