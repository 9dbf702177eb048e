"""Who takes part."""

from __future__ import annotations

import itertools
from typing import Any

import numpy as np
import pytest

from fedrec import keyed
from fedrec.core.participation import Participation
from fedrec.errors import BadInput

KEYS = keyed.keys_of(range(100))


def test_everyone_takes_part_by_default() -> None:
    np.testing.assert_array_equal(Participation().choose(0, 1, KEYS), np.arange(100))


def test_a_share_is_drawn_anew_each_round() -> None:
    some = Participation(0.3)
    first, second = some.choose(0, 1, KEYS), some.choose(0, 2, KEYS)
    assert len(first) == len(second) == 30
    assert not np.array_equal(first, second)
    np.testing.assert_array_equal(first, some.choose(0, 1, KEYS))


def test_nobody_takes_part_twice_in_a_row() -> None:
    resting = Participation(0.4, rest=True)
    rounds = [set(resting.choose(0, r, KEYS).tolist()) for r in range(1, 9)]
    for one, after in itertools.pairwise(rounds):
        assert not one & after
    assert len(set().union(*rounds)) > 80


def test_the_choice_follows_clients_not_positions() -> None:
    order = np.random.default_rng(0).permutation(100)
    some = Participation(0.3)
    chosen = set(some.choose(0, 1, KEYS).tolist())
    assert {int(order[p]) for p in some.choose(0, 1, KEYS[order])} == chosen


def test_dropouts_are_a_share_of_the_chosen() -> None:
    losing = Participation(1.0, dropout=0.25)
    gone = [100 - len(losing.answering(0, r, KEYS, np.arange(100))) for r in range(1, 41)]
    assert 20 < np.mean(gone) < 30


@pytest.mark.parametrize("bad", [{"share": 0}, {"share": 1.5}, {"dropout": 1}, {"share": 0.8, "rest": True}])
def test_impossible_shares_are_bad_input(bad: dict[str, Any]) -> None:
    with pytest.raises(BadInput):
        Participation(**bad)
