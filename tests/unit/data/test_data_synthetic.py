"""Synthetic worlds: their sizes, their structure, and the known answer of the planted one."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from fedrec.data.interactions import Interactions
from fedrec.data.load import load
from fedrec.data.synthetic import demo, planted, planted_answer, scalable, world
from fedrec.errors import BadInput
from there import there


def check(data: Interactions) -> None:
    """Ordered by user and time, no pair twice, one id each."""
    assert (np.diff(data.users) >= 0).all()
    assert (np.diff(there(data.times))[np.diff(data.users) == 0] >= 0).all()
    pairs = data.users.astype(np.int64) * data.n_items + data.items
    assert len(np.unique(pairs)) == len(pairs)
    assert data.users.max() < data.n_users
    assert data.items.max() < data.n_items
    assert len(set(data.user_ids.tolist())) == data.n_users
    assert data.users.dtype == data.items.dtype == np.int32


def equal(left: Interactions, right: Interactions) -> bool:
    return np.array_equal(left.items, right.items) and np.array_equal(there(left.times), there(right.times))


def test_demo() -> None:
    data = demo()
    check(data)
    assert (data.n_users, data.n_items) == (120, 160)
    assert 3_300 < len(data) < 3_700
    assert data.titles is not None
    assert len(set(data.titles.tolist())) == 160
    assert (np.bincount(data.items, minlength=160) > 0).all()
    assert equal(demo(3), demo(3))
    assert not equal(demo(3), demo(4))


def test_demo_has_groups() -> None:
    data = demo()
    own = (data.users % 8) == (data.items // 20)
    assert own.mean() > 0.35  # 1/8 by chance


def test_planted_popularity_is_constant_in_every_part() -> None:
    data, answer = planted(), planted_answer()
    check(data)
    place = np.tile(np.arange(answer.per_user), data.n_users)
    for rows in (place < answer.per_user - 2, place == answer.per_user - 2, place == answer.per_user - 1):
        assert len(set(np.bincount(data.items[rows], minlength=data.n_items).tolist())) == 1


@pytest.mark.parametrize(("groups", "block", "missing"), [(6, 20, 3), (3, 5, 0), (2, 12, 9)])
def test_planted_answer_is_what_full_ranking_gives(groups: int, block: int, missing: int) -> None:
    data = planted(groups, 2 * block, block, missing, seed=5)
    answer = planted_answer(groups, 2 * block, block, missing, seed=5)
    scores = answer.scores()
    items = data.items.reshape(data.n_users, answer.per_user)
    assert (answer.group_of_item[items] == answer.group_of_user[:, None]).all()
    hits = {"perfect": 0.0, "popularity": 0.0, "ndcg": 0.0}
    k = 3
    for user, row in enumerate(items):
        seen, test = row[:-1], row[-1]
        open_items = np.setdiff1d(np.arange(data.n_items), seen)
        assert len(open_items) == answer.candidates
        hits["popularity"] += k / len(open_items)
        above = (scores[user, open_items] > scores[user, test]).sum()
        tied = (scores[user, open_items] == scores[user, test]).sum()
        assert above == 0
        hits["perfect"] += min(1.0, k / tied)
        hits["ndcg"] += sum(1 / np.log2(rank + 2) for rank in range(tied) if rank < k) / tied
    assert hits["perfect"] / data.n_users == pytest.approx(answer.perfect_hr(k))
    assert hits["popularity"] / data.n_users == pytest.approx(answer.popularity_hr(k))
    assert hits["ndcg"] / data.n_users == pytest.approx(answer.perfect_ndcg(k))


def test_planted_figures_of_the_documentation() -> None:
    answer = planted_answer()
    assert answer.candidates == 104
    assert answer.perfect_hr(10) == 1.0
    assert answer.perfect_ndcg(10) == pytest.approx(0.640, abs=5e-4)
    assert answer.popularity_hr(10) == pytest.approx(0.096, abs=5e-4)


def test_planted_order_is_the_circle() -> None:
    data, answer = planted(seed=2), planted_answer(seed=2)
    places = answer.place_of_item[data.items].reshape(data.n_users, -1)
    assert (np.diff(places, axis=1) % 20 == 1).all()
    assert there(data.titles)[0] == f"group {answer.group_of_item[0]} place {answer.place_of_item[0]}"


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"groups": 1}, "2 groups"),
        ({"users_per_group": 30}, "multiple"),
        ({"missing": 18}, "missing must be 0 to 17"),
    ],
)
def test_planted_refuses(options: dict[str, int], said: str) -> None:
    with pytest.raises(BadInput, match=said):
        planted(**options)


@pytest.mark.parametrize(
    ("users", "items", "interactions", "groups"),
    [(1000, 500, 20_000, 8), (60_000, 300, 300_000, 4), (10, 20, 100, 1), (7, 4, 14, 2), (5, 100, 5, 3)],
)
def test_scalable_has_the_size_asked_for(users: int, items: int, interactions: int, groups: int) -> None:
    data = scalable(users, items, interactions, groups, seed=1)
    check(data)
    assert (data.n_users, data.n_items, len(data)) == (users, items, interactions)
    assert np.bincount(data.users, minlength=users).min() >= min(5, interactions // users)


def test_scalable_is_long_tailed_and_grouped() -> None:
    data = scalable(3000, 400, 60_000, groups=4, exponent=1.0)
    popular = np.sort(np.bincount(data.items, minlength=400))[::-1]
    assert popular[:40].sum() > 0.35 * len(data)
    flat = np.sort(np.bincount(scalable(3000, 400, 60_000, groups=4, exponent=0.0).items, minlength=400))[::-1]
    assert flat[:40].sum() < 0.2 * len(data)


def test_scalable_groups_show_as_directions_of_taste() -> None:
    def spectrum(groups: int) -> np.ndarray:
        data = scalable(2000, 200, 40_000, groups=groups, exponent=0.3)
        table = np.zeros((2000, 200))
        table[data.users, data.items] = 1
        return np.linalg.svd(table / np.sqrt(table.sum(axis=1, keepdims=True)), compute_uv=False)

    grouped, alike = spectrum(4), spectrum(1)
    assert grouped[3] > 1.5 * grouped[4]  # popularity and, for 4 groups, 3 directions of taste
    assert alike[1] < 1.5 * alike[2]  # popularity alone


def test_scalable_seed() -> None:
    assert equal(scalable(seed=1), scalable(seed=1))
    assert not equal(scalable(seed=1), scalable(seed=2))


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"users": 0}, "at least 1 user"),
        ({"groups": 501}, "groups must be 1 to"),
        ({"exponent": 9.0}, "exponent must be 0 to 3"),
        ({"interactions": 10}, "use 1000 to 250000"),
        ({"interactions": 10**9}, "use 1000 to 250000"),
    ],
)
def test_scalable_refuses(options: dict[str, Any], said: str) -> None:
    with pytest.raises(BadInput, match=said):
        scalable(**options)


def test_worlds_by_name() -> None:
    data = load("scale:users=100, items=50,interactions=1_000,groups=2,exponent=0.5", seed=4)
    assert equal(data, scalable(100, 50, 1000, 2, 0.5, 4))
    assert equal(load("planted:groups=3,seed=7"), planted(groups=3, seed=7))
    assert there(load("demo", client_groups=10).client_of_user).max() == 9
    assert load("scale:").n_users == 1000
    assert load("demo", min_interactions=25).n_users < 120


@pytest.mark.parametrize(
    ("name", "said"),
    [
        ("scale:user=3", "did you mean 'users'"),
        ("scale:users=many", "users must be a whole number, not 'many'"),
        ("scale:exponent=x", "exponent must be a number"),
        ("scale:users", "'users' is not 'option=number'"),
        ("demos", "unknown world"),
    ],
)
def test_worlds_refuse(name: str, said: str) -> None:
    with pytest.raises(BadInput, match=said):
        world(name)


@pytest.mark.skipif(not Path("/proc/self/status").exists(), reason="the system does not say a process's own peak")
def test_a_quarter_of_a_million_users_fit_into_a_gigabyte() -> None:
    """In a process of its own (its ``ru_maxrss`` would begin with ours). A million then fit into four."""
    code = (
        "import pathlib, re; from fedrec.data.load import load; "
        "data = load('scale:users=250000,items=20000,interactions=1800000'); "
        "print(len(data), re.search(r'VmHWM:\\s+(\\d+) kB', pathlib.Path('/proc/self/status').read_text())[1])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    interactions, kilobytes = map(int, done.stdout.split())
    assert interactions == 1_800_000
    assert kilobytes < 2**20
