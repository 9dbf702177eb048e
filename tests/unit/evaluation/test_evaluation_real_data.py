"""Known figures on real data; skipped where the data is not at hand."""

from __future__ import annotations

import os
from pathlib import Path

import numpy as np
import pytest
from private_tables import private_table_trainer

from fedrec.data.interactions import Interactions
from fedrec.evaluation.canary import chance, leak_banner
from fedrec.evaluation.evaluating import evaluate
from fedrec.evaluation.protocols import find
from fedrec.evaluation.sums import MetricSums

pytestmark = pytest.mark.data


@pytest.fixture(scope="module")
def ml100k() -> Interactions:
    folder = os.environ.get("FEDREC_DATA")
    if not folder or not (Path(folder) / "ml-100k").is_dir():
        pytest.skip("needs ml-100k below the folder that FEDREC_DATA names")
    from fedrec.data.load import load

    return load("ml-100k", Path(folder))


def test_popularity_reaches_its_known_figures(ml100k: Interactions) -> None:
    task = find("strict").prepare(ml100k, 0)
    popularity = np.bincount(task.train.values, minlength=ml100k.n_items).astype(np.float32)
    scores = np.broadcast_to(popularity, (ml100k.n_users, ml100k.n_items))
    means = MetricSums.from_values(evaluate(scores, task.held("test"), task.protocol.metrics)).means()
    known = {"HR@10/99": 0.419, "NDCG@10/99": 0.240, "HR@10": 0.086, "NDCG@10": 0.044, "HR@20": 0.127}
    assert {name: means[name] for name in known} == pytest.approx(known, abs=0.015)


@pytest.mark.slow
@pytest.mark.parametrize(("protocol", "leaks"), [("strict", False), ("paper-fedca", True)])
def test_canary(ml100k: Interactions, protocol: str, leaks: bool) -> None:
    task = find(protocol).prepare(ml100k, 0)
    users = np.arange(0, ml100k.n_users, 6)
    scores = private_table_trainer(task, 0, users=users)
    sums = MetricSums.from_values(evaluate(scores, task.held("test", users), task.protocol.metrics))
    assert (leak_banner(sums, chance(task, "test", "HR@10/99"), protocol=protocol) is not None) == leaks
