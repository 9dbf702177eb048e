"""Sampled candidates: unobserved, distinct, and the user's own."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from evaluation_worlds import make_data, ragged

from fedrec import keyed
from fedrec.evaluation.candidates import draw
from fedrec.evaluation.protocols import find


@pytest.mark.parametrize("n_items", [60, 130, 500, 5000])
def test_unobserved_and_distinct(n_items: int) -> None:
    task = find("strict").prepare(make_data(n_items=n_items), 0)
    held = task.held("test")
    assert held.candidates is not None
    for user, row in enumerate(held.candidates):
        drawn = row[row >= 0]
        mine = set(task.data.items[task.data.users == user].tolist())
        assert len(set(drawn.tolist())) == len(drawn) == min(99, n_items - len(mine))
        assert not mine & set(drawn.tolist())
        assert (row[len(drawn) :] == -1).all()


@pytest.mark.parametrize("n_items", [130, 2000])
def test_do_not_depend_on_order_block_or_part_of_the_population(n_items: int) -> None:
    data = make_data(n_items=n_items)
    task = find("strict").prepare(data, 0)
    whole = task.held("test").candidates
    assert whole is not None
    some = np.array([17, 3, 4, 5])
    part = task.held("test", some).candidates
    assert part is not None
    assert (part == whole[some]).all()
    renumbered = replace(data, users=(data.n_users - 1 - data.users)[::-1], items=data.items[::-1], times=None)
    renumbered = replace(renumbered, user_ids=data.user_ids[::-1])
    other = find("strict").prepare(renumbered, 0).held("test").candidates
    assert other is not None
    assert (other[::-1] == whole).all()


def test_differ_by_seed_part_and_user() -> None:
    data = make_data(n_items=2000)
    first = find("strict").prepare(data, 0).held("test").candidates
    seed = find("strict").prepare(data, 1).held("test").candidates
    part = find("strict").prepare(data, 0).held("valid").candidates
    assert first is not None
    assert seed is not None
    assert part is not None
    assert (first != seed).any(axis=1).all()
    assert (first != part).any(axis=1).all()
    assert (first[0] != first[1]).any()


@pytest.mark.parametrize("n_items", [24, 400])
def test_uniform(n_items: int) -> None:
    users = 4000
    streams = keyed.streams(7, np.arange(users).astype(np.uint64))
    drawn = draw(streams, ragged(*[[0, 1, 2, 3]] * users), n_items, 5)
    counts = np.bincount(drawn.ravel(), minlength=n_items)
    assert (counts[:4] == 0).all()
    expected = users * 5 / (n_items - 4)
    chi2 = ((counts[4:] - expected) ** 2 / expected).sum()
    assert abs(chi2 - (n_items - 5)) < 5 * np.sqrt(2 * n_items)


def test_users_who_have_everything_get_none() -> None:
    streams = keyed.streams(7, np.arange(1).astype(np.uint64))
    assert (draw(streams, ragged([0, 1, 2]), 3, 4) == -1).all()


def test_users_who_have_nothing_draw_from_everything() -> None:
    streams = keyed.streams(7, np.arange(2).astype(np.uint64))
    drawn = draw(streams, ragged([], []), 50, 5)
    assert drawn.min() >= 0
    assert all(len(set(row.tolist())) == 5 for row in drawn)


def test_rejection_goes_on_until_enough_are_found() -> None:
    # 85 % observed: the first words do not suffice, but too many are left for a permutation
    n_items = 4000
    observed = list(range(int(n_items * 0.85)))
    streams = keyed.streams(7, np.arange(20).astype(np.uint64))
    drawn = draw(streams, ragged(*[observed] * 20), n_items, 99)
    assert drawn.min() >= len(observed)
    assert all(len(set(row.tolist())) == 99 for row in drawn)
