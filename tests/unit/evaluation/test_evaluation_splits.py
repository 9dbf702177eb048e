"""Splits: what is held out, and what it depends on."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from evaluation_worlds import make_data

from fedrec import keyed
from fedrec.data.interactions import TEST, TRAIN, VALID, Interactions
from fedrec.errors import BadInput
from fedrec.evaluation.protocols import find
from fedrec.evaluation.splits import Given, LeaveOneOut, RandomShare, pair_words, time_order


def shuffled(data: Interactions, seed: int) -> tuple[Interactions, np.ndarray]:
    """The same pairs with rows of each user in another order (by time still, where there is time)."""
    order = np.random.default_rng(seed).permutation(len(data))
    keys = (data.users[order],) if data.times is None else (data.times[order], data.users[order])
    order = order[np.lexsort(keys)]
    times = None if data.times is None else data.times[order]
    return replace(data, users=data.users[order], items=data.items[order], times=times), order


def test_last_by_time_is_test_and_second_to_last_is_validation() -> None:
    data = make_data()
    part = LeaveOneOut()(data, seed=0)
    assert data.times is not None
    for user in range(data.n_users):
        mine = data.users == user
        times, parts = data.times[mine], part[mine]
        assert (parts == TEST).sum() == (parts == VALID).sum() == 1
        assert times[parts == TEST] == times.max()
        assert (times[parts == VALID] >= times[parts == TRAIN].max()).all()


def test_time_split_does_not_depend_on_the_seed() -> None:
    data = make_data()
    assert (LeaveOneOut()(data, 0) == LeaveOneOut()(data, 1)).all()


@pytest.mark.parametrize("split", [LeaveOneOut(), RandomShare()])
def test_random_split_is_fixed_by_the_seed(split: LeaveOneOut | RandomShare) -> None:
    data = make_data(timed=False)
    assert (split(data, 0) == split(data, 0)).all()
    assert (split(data, 0) != split(data, 1)).any()


@pytest.mark.parametrize("timed", [True, False])
@pytest.mark.parametrize("split", [LeaveOneOut(), RandomShare()])
def test_split_is_independent_of_row_order(timed: bool, split: LeaveOneOut | RandomShare) -> None:
    data = make_data(timed=timed)
    other, order = shuffled(data, 5)
    assert (order != np.arange(len(data))).any()
    assert (split(data, 3)[order] == split(other, 3)).all()


def test_split_is_independent_of_the_numbering_of_users_and_items() -> None:
    data = make_data(timed=False)
    renumbered = replace(
        data,
        users=(data.n_users - 1 - data.users)[::-1],
        items=(data.n_items - 1 - data.items)[::-1],
        user_ids=data.user_ids[::-1],
        item_ids=data.item_ids[::-1],
    )
    assert (LeaveOneOut()(data, 0) == LeaveOneOut()(renumbered, 0)[::-1]).all()


def test_random_share_takes_a_fifth_and_then_a_tenth() -> None:
    counts = np.array([1, 2, 3, 10, 50])
    users = np.repeat(np.arange(5), counts).astype(np.int32)
    items = np.concatenate([np.arange(c) for c in counts]).astype(np.int32)
    data = Interactions("x", users, items, np.arange(5).astype(str), np.arange(50).astype(str))
    part = RandomShare(0.2, 0.1)(data, 0)
    held = [[int((part[users == u] == which).sum()) for which in (TRAIN, VALID, TEST)] for u in range(5)]
    assert held == [[1, 0, 0], [2, 0, 0], [2, 0, 1], [7, 1, 2], [36, 4, 10]]


@pytest.mark.parametrize("protocol", ["strict", "paper-fedca"])
def test_a_share_of_the_training_data_changes_nothing_but_what_is_learnt_from(protocol: str) -> None:
    data = make_data()
    whole, half, same = (find(protocol).prepare(data, 1, share) for share in (1.0, 0.5, 0.5))
    assert (half.train.counts == np.maximum(1, np.round(0.5 * whole.train.counts))).all()
    for user in range(data.n_users):
        assert set(half.train[user]) <= set(whole.train[user])
    assert (half.train.values == same.train.values).all()
    for part in ("valid", "test"):
        assert (getattr(half, part).values == getattr(whole, part).values).all()
    assert (half.observed.values == whole.observed.values).all()  # what is left out is still no candidate
    if find(protocol).leaky:
        assert (half.exclude.values == whole.exclude.values).all()
    else:
        assert (np.sort(half.exclude[0]) == np.sort(half.train[0])).all()
    assert not np.array_equal(half.train.values, find(protocol).prepare(data, 2, 0.5).train.values)


def test_too_few_interactions_names_the_remedy_and_nobody() -> None:
    ids = np.array(["ann", "bob", "cas"])
    data = Interactions(
        "tiny", np.array([0, 0, 0, 1, 1, 2], np.int32), np.array([0, 1, 2, 0, 1, 0], np.int32), ids, ids
    )
    with pytest.raises(BadInput, match=r"2 of 3 users of .* fewer than 3 interactions.*--min-interactions 3"):
        LeaveOneOut()(data, 0)


def test_ready_split_takes_the_place_of_the_protocols_own() -> None:
    data = make_data()
    part = np.full(len(data), TRAIN, np.int8)
    part[data.user_start[:-1]] = TEST  # the first, which no leave-one-out by time would choose
    task = find("strict").prepare(replace(data, part=part), 0)
    assert (task.test.values == data.items[data.user_start[:-1]]).all()
    assert len(task.valid.values) == 0
    with pytest.raises(BadInput, match="not ready split"):
        Given()(data, 0)


def test_training_items_are_in_time_order_and_exclude_is_sorted() -> None:
    data = make_data()
    task = find("strict").prepare(data, 0)
    order = time_order(data)
    for user in range(data.n_users):
        mine = order[data.users[order] == user]
        assert task.train[user].tolist() == data.items[mine][:-2].tolist()
        assert task.exclude[user].tolist() == sorted(task.train[user].tolist())
    leaky = find("paper-fedca").prepare(data, 0)
    for user in range(data.n_users):
        assert leaky.exclude[user].tolist() == sorted(data.items[data.users == user].tolist())


def test_without_time_training_items_keep_the_order_of_the_source() -> None:
    data = make_data(timed=False)
    task = find("strict").prepare(data, 0)
    for user in range(data.n_users):
        mine = data.items[data.users == user].tolist()
        kept = set(task.train[user].tolist())
        assert task.train[user].tolist() == [item for item in mine if item in kept]


@pytest.mark.parametrize("sorted_", [True, False])
def test_only_rows_of_equal_times_are_moved(sorted_: bool) -> None:
    """Data that stands in order already is not sorted as a whole, and comes out as if it were."""
    draw = np.random.default_rng(3)
    pairs = draw.choice(30 * 40, 400, replace=False)
    times = draw.integers(0, 6, 400).astype(np.int64)  # many are equal
    order = np.lexsort((times, pairs // 40)) if sorted_ else np.arange(400)
    users, items = (pairs[order] // 40).astype(np.int32), (pairs[order] % 40).astype(np.int32)
    names = np.arange(40).astype(np.str_)
    data = Interactions("ties", users, items, names[:30], names, times[order])
    words = pair_words(data, keyed.stream(0, "equal times"))
    np.testing.assert_array_equal(time_order(data), np.lexsort((words, times[order], users)))
