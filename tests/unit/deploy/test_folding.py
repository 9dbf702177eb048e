"""A fold that fails is tried without whoever spoilt it, and the state before is kept."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest

from fedrec.core.method import Keys, Reply
from fedrec.core.misfit import finite
from fedrec.deploy.server.folding import Fold
from fedrec.evaluation.sums import MetricSums


@dataclass(frozen=True)
class State:
    total: Any


class Adding:
    """A method that adds numbers in 32 bits, and cannot take a text."""

    def aggregate(self, server: State, replies: Iterator[Reply[Any]], keys: Keys) -> State:
        total = server.total.copy()
        for reply in replies:
            total = total + np.float32(reply.upload)
        return State(total)


def fold(**given: Any) -> Fold:
    def replies(uploads: Any) -> Iterator[Reply[Any]]:
        return (Reply(np.zeros(1, np.int64), upload) for upload in uploads.values())

    method: Any = Adding()
    return Fold(method, State(np.ones(2, np.float32)), Keys(0, 1), replies, **given)


@pytest.mark.parametrize(
    ("uploads", "left_out", "total"),
    [
        ({"a": 1, "b": 2}, set(), 4),
        ({"a": 1, "b": "x", "c": 2}, {"b"}, 4),
        ({"a": float("inf"), "b": 2, "c": "x", "d": 3}, {"a", "c"}, 6),
        ({"a": "x"}, {"a"}, 1),
        ({"a": "x", "b": "y"}, {"a", "b"}, 1),
        ({}, set(), 1),
        ({"a": 3e38, "b": 1, "c": 3e38, "d": 1}, {"c"}, 3e38),  # only together too large
    ],
)
def test_who_spoils_a_fold_is_found(uploads: dict[str, Any], left_out: set[str], total: float) -> None:
    one = fold()
    state, culprits = one.without_culprits(uploads)
    assert set(culprits) == left_out
    np.testing.assert_allclose(state.total, np.full(2, total), rtol=1e-6)
    assert all(culprits.values()), "a reason for each"
    assert (one.before.total == 1).all(), "the state before is what it was"


def test_a_state_that_fails_its_trial_is_not_taken() -> None:
    state, culprits = fold(tried=lambda state: bool(state.total.max() < 100)).without_culprits(
        {"a": 1, "b": 500, "c": 2}
    )
    assert culprits == {"b": "its uploads leave a state that no client could work with"}
    assert state.total.tolist() == [4, 4]


def test_numbers_anywhere_in_a_state_are_looked_at() -> None:
    large = np.zeros((3, 1 << 21), np.float32)
    assert finite({"a": [State(large), 1.0, "x", None, 7]})
    large[2, -1] = np.inf
    assert not finite({"a": [State(large)]})
    assert not finite(State(float("nan")))
    assert finite(np.broadcast_to(np.float32(1), (1 << 40, 4)))
    assert not finite(np.broadcast_to(np.float32(np.nan), (1 << 40, 4)))


@pytest.mark.parametrize(
    ("sums", "count", "said"),
    [
        ({"HR@10": 2.0, "MRR@10": 0.0}, 2, None),
        ({}, 0, None),
        ({"HR@10": 0.0, "MRR@10": 0.0}, 0, None),
        ({"HR@10": 2.0}, 2, "'MRR@10'"),
        ({"HR@10": 2.0, "MRR@10": 0.0, "x": 0.0}, 2, "'x'"),
        ({"HR@10": 2.1, "MRR@10": 0.0}, 2, "the sum 2.1 of HR@10 over 2 users"),
        ({"HR@10": -0.1, "MRR@10": 0.0}, 2, "the sum -0.1"),
        ({"HR@10": float("nan"), "MRR@10": 0.0}, 2, "the sum nan"),
        ({"HR@10": 1.0, "MRR@10": 0.0}, 4, "of 4 users, but there are only 3"),
        ({"HR@10": 1.0, "MRR@10": 0.0}, -1, "of -1 users"),
        ({}, 2, "not the protocol's"),
    ],
)
def test_metric_sums_have_a_range(sums: dict[str, float], count: int, said: str | None) -> None:
    found = MetricSums(sums, count).fault(("HR@10", "MRR@10"), 3)
    assert found is None if said is None else said in (found or "")
