"""Values of users whose scores come in pieces: the same as all at once, for those who are wanted."""

from __future__ import annotations

import numpy as np
import pytest

from fedrec import keyed
from fedrec.data.ragged import Ragged, offsets
from fedrec.evaluation.collecting import Collecting, evaluated_users
from fedrec.evaluation.evaluating import evaluate
from fedrec.evaluation.held import Held
from fedrec.evaluation.metrics import MetricSet
from fedrec.evaluation.task import Part

USERS, ITEMS = 23, 40
METRICS = MetricSet(("HR@10", "NDCG@10", "Recall@5"))


def held(seed: int, targets: int) -> Held:
    draw = np.random.default_rng(seed)
    orders = [draw.permutation(ITEMS) for _ in range(USERS)]
    own = [order[: draw.integers(0, targets + 1)] for order in orders]
    masked = [np.sort(order[targets : targets + 6]) for order in orders]
    targets_of, masked_of = (
        Ragged(offsets(np.array([len(items) for items in some])), np.concatenate(some).astype(np.int32))
        for some in (own, masked)
    )
    return Held(targets_of, masked_of)


@pytest.mark.parametrize("targets", [1, 3])  # counted; evaluated piece by piece
@pytest.mark.parametrize("sample", [None, 9])
def test_pieces_in_any_order_give_the_values_of_all_at_once(targets: int, sample: int | None) -> None:
    wanted = evaluated_users(3, keyed.streams(keyed.stream(0, "users"), np.arange(USERS, dtype=np.uint64)), sample)
    assert wanted.sum() == (sample or USERS)
    parts: dict[Part, Held] = {"valid": held(1, targets), "test": held(2, targets)}
    scores = np.random.default_rng(0).normal(size=(USERS, ITEMS)).astype(np.float32)
    collecting = Collecting({part: one.take(np.flatnonzero(wanted)) for part, one in parts.items()}, wanted, METRICS)
    for _ in range(2):  # a second time, after forgetting the first
        collecting.begin()
        assert not collecting.values()["test"]
        for piece in np.array_split(np.random.default_rng(5).permutation(USERS), 4):
            collecting.add(piece, scores[piece])
        for part, one in parts.items():
            found, whole = collecting.values()[part], evaluate(scores, one, METRICS)
            for name in METRICS.names:
                assert np.array_equal(found[name], np.where(wanted, whole[name], np.nan), equal_nan=True)
