"""The canary sings under the leaky pool and is silent under the honest one."""

from __future__ import annotations

import numpy as np
import pytest
from evaluation_worlds import make_data, ragged
from private_tables import batch, private_table_trainer

from fedrec.data.interactions import Interactions
from fedrec.errors import BadInput
from fedrec.evaluation.canary import chance, guesses, leak_banner
from fedrec.evaluation.evaluating import evaluate
from fedrec.evaluation.protocols import find
from fedrec.evaluation.sums import MetricSums


def world(n_users: int = 150, n_items: int = 200, per_user: int = 40) -> Interactions:
    numbers = np.random.default_rng(3)
    popularity = 1.0 / np.arange(1, n_items + 1) ** 0.5
    items = [numbers.choice(n_items, per_user, replace=False, p=popularity / popularity.sum()) for _ in range(n_users)]
    users = np.repeat(np.arange(n_users), per_user)
    times = np.tile(np.arange(per_user), n_users)
    user_ids, item_ids = (np.arange(n).astype(str) for n in (n_users, n_items))
    drawn = np.concatenate(items).astype(np.int32)
    return Interactions("synthetic", users.astype(np.int32), drawn, user_ids, item_ids, times=times)


def trained(protocol: str) -> tuple[MetricSums, float]:
    task = find(protocol).prepare(world(), 0)
    scores = private_table_trainer(task, 0, rounds=6, epochs=10, dim=8)
    sums = MetricSums.from_values(evaluate(scores, task.held("test"), task.protocol.metrics))
    return sums, chance(task, "test", "HR@10/99")


def test_leaky_pool_is_detected() -> None:
    sums, by_chance = trained("paper-fedca")
    banner = leak_banner(sums, by_chance, protocol="paper-fedca")
    assert banner is not None
    assert "paper-fedca" in banner
    assert "chance is 0.100" in banner
    assert "\n" not in banner


def test_honest_pool_stays_at_chance() -> None:
    sums, by_chance = trained("strict")
    assert leak_banner(sums, by_chance) is None
    assert sums.means()["HR@10/99"] < by_chance + 0.09  # four standard errors would be 0.098


def test_banner_needs_size_and_significance() -> None:
    values = {"HR@10/99": np.array([1.0] * 20 + [0.0] * 80)}
    assert leak_banner(values, 0.1) is None  # z = 3.3
    more = {"HR@10/99": np.tile(values["HR@10/99"], 10)}
    assert leak_banner(more, 0.1) is not None
    assert leak_banner(more, 0.1, single=False) is None
    small = {"HR@10/99": np.array([1.0] * 120 + [0.0] * 880).repeat(100)}
    assert leak_banner(small, 0.1) is None  # 0.02 above, however certain
    assert leak_banner(more, 0.1, metric="NDCG@10") is None
    assert leak_banner(MetricSums(), 0.1) is None


def test_trainer_does_not_depend_on_who_else_is_trained() -> None:
    task = find("strict").prepare(make_data(), 0)
    whole = private_table_trainer(task, 0, rounds=2, epochs=2, dim=4)
    some = private_table_trainer(task, 0, rounds=2, epochs=2, dim=4, users=np.array([7, 2]))
    np.testing.assert_allclose(some, whole[[7, 2]], rtol=1e-5)


def test_trainer_separates_what_it_saw() -> None:
    task = find("strict").prepare(make_data(), 0)
    scores = private_table_trainer(task, 0, rounds=20, dim=4)
    mine = scores[task.train.owners, task.train.values]
    assert mine.mean() > scores.mean() + 1.0


def test_negatives_come_from_outside_the_pool_and_cover_it() -> None:
    train, exclude = ragged([5, 1], [0]), ragged([1, 3, 5], [0, 7])
    rows, labels, weights = batch(train, exclude, np.array([11, 12], np.uint64), 8, 400)
    negatives = rows[labels == 0]
    assert set(negatives[negatives < 8].tolist()) == {0, 2, 4, 6, 7}
    assert set((negatives[negatives >= 8] - 8).tolist()) == {1, 2, 3, 4, 5, 6}
    assert weights[labels == 0].sum() == 3 * 400
    assert sorted(rows[labels == 1].tolist()) == [1, 5, 8]
    assert weights[(labels == 0) & (rows < 8)].min() > 100  # 160 expected


def test_a_user_with_everything_cannot_draw_negatives() -> None:
    with pytest.raises(BadInput, match="position 1 has every item"):
        batch(ragged([0], [0]), ragged([0], [0, 1]), np.array([1, 2], np.uint64), 2, 4)


def test_a_start_that_all_share_is_one_guess_for_everybody() -> None:
    """Ten users, nine of whom hold out the same item: a lucky start looks like nine hits, and is one guess."""
    users = np.repeat(np.arange(10), 3).astype(np.int32)
    last = np.array([0] * 9 + [1])
    items = np.stack([np.arange(10) + 2, np.arange(10) + 12, last], axis=1).reshape(-1).astype(np.int32)
    user_ids, item_ids = (np.array([str(i) for i in range(count)]) for count in (10, 22))
    data = Interactions("skewed", users, items, user_ids, item_ids, times=np.arange(30))
    task = find("strict").prepare(data, 0)
    assert guesses(task, "test") == pytest.approx(1 / (0.9**2 + 0.1**2))
    lucky = {"HR@10/99": np.tile(np.array([1.0] * 9 + [0.0]), 30)}
    assert leak_banner(lucky, 0.1) is not None
    assert leak_banner(lucky, 0.1, independent=guesses(task, "test")) is None
    assert leak_banner(lucky, 0.1, independent=100.0) is not None
