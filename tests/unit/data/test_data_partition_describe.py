"""Users into clients, and data sets in numbers."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from command_line import Cli
from data_files import Write
from fedrec.data.describe import describe, listing
from fedrec.data.interactions import numeric_order
from fedrec.data.load import load
from fedrec.data.partition import partition
from fedrec.data.synthetic import demo, scalable
from fedrec.errors import BadInput
from there import there


@given(st.integers(1, 120), st.integers(0, 3))
def test_groups_are_even_and_follow_the_user_id(groups: int, seed: int) -> None:
    data = demo()
    grouped = partition(data, groups, seed)
    sizes = np.bincount(there(grouped.client_of_user), minlength=groups)
    assert sizes.max() - sizes.min() <= 1
    assert len(there(grouped.client_ids)) == groups
    # the same users in another order land in the same groups
    turned = replace(data, user_ids=data.user_ids[::-1].copy())
    again = partition(turned, groups, seed)
    assert np.array_equal(there(again.client_of_user)[::-1], there(grouped.client_of_user))


def test_groups_depend_on_the_seed() -> None:
    assert not np.array_equal(
        there(partition(demo(), 8, 0).client_of_user), there(partition(demo(), 8, 1).client_of_user)
    )


def test_blocks_keep_neighbours_together_and_the_last_takes_the_rest(write: Write) -> None:
    data = load(str(write("a.csv", "user,item\n" + "".join(f"{user},x\n" for user in (10, 9, 2, 1, 30, 4, 5)))))
    found = there(partition(data, 3, spread="blocks").client_of_user)
    assert dict(zip(data.user_ids.tolist(), found.tolist(), strict=True)) == {
        "1": 0, "2": 0, "4": 1, "5": 1, "9": 2, "10": 2, "30": 2
    }  # fmt: skip
    assert there(partition(demo(), 120, spread="blocks").client_of_user).tolist() == list(range(120))


@pytest.mark.data
def test_blocks_are_the_partition_of_fedcia(real_data: Path) -> None:
    given = load("fedcia/ml100k_100", real_data)
    ours = partition(load("ml-100k", real_data), 100, spread="blocks")
    assert np.array_equal(there(given.client_of_user), there(ours.client_of_user))


def test_one_client_per_user_and_the_given_column(write: Write) -> None:
    data = load(str(write("a.csv", "user,item,client\na,x,n\nb,x,s\nc,x,s\n")))
    assert partition(data, "given") is data
    assert partition(data, "user").client_of_user is None
    assert partition(data, None).client_ids is None


@pytest.mark.parametrize(
    ("how", "said"),
    [
        ("given", "has no client column"),
        (0, "use 1 to 120"),
        (121, "use 1 to 120"),
        ("x", "unknown"),
        (True, "unknown"),
    ],
)
def test_partition_refuses(how: object, said: str) -> None:
    with pytest.raises(BadInput, match=said):
        partition(demo(), how)  # type: ignore[arg-type]


def test_describe_counts(write: Write) -> None:
    data = load(str(write("a.csv", "user,item,time\na,x,86400\na,y,0\nb,x,1704067200\nb,z,5\nb,y,7\n")))
    said = describe(data)
    assert (said.users, said.items, said.interactions, said.clients) == (2, 3, 5, 2)
    assert said.density == pytest.approx(5 / 6)
    assert (said.least_per_user, said.median_per_user, said.most_per_user) == (2, 2.5, 3)
    assert (said.first_time, said.last_time) == ("1970-01-01", "2024-01-01")
    assert said.ordered
    assert not said.titles
    assert said.parts is None


def test_describe_milliseconds_order_only_and_no_time(write: Write) -> None:
    micro = load(str(write("a.csv", "user,item,time\na,x,1583378629552\n")))
    assert describe(micro).last_time == "2020-03-05"
    order = describe(load(str(write("s.txt", "1 2 3 4 5 6 7\n2 3\n"))))
    assert order.ordered
    assert order.first_time is None
    assert not describe(load(str(write("b.csv", "user,item\na,x\n")))).ordered


def test_describe_split_and_clients(write: Write, tmp_path: Path) -> None:
    write("d/train.csv", "user,item,client\na,x,n\nb,x,n\n")
    write("d/test.csv", "user,item,client\na,y,n\n")
    said = describe(load("d", tmp_path))
    assert said.parts == (2, 0, 1)
    assert said.clients == 1
    assert describe(demo()).titles


def test_listing(write: Write, tmp_path: Path) -> None:
    write("filmtrust/ratings.txt", "1 1 1\n")
    lines = {line.name: line for line in listing(tmp_path)}
    assert len(lines) == 15
    assert lines["demo"].present
    assert lines["filmtrust"].present
    assert lines["filmtrust"].papers == ("fedca", "fediar")
    assert not lines["ml-100k"].present
    assert "recbole==1.2.1" in lines["ml-100k"].origin
    assert lines["yelp"].origin == "by hand from https://www.yelp.com/dataset"


def test_listed_data_stands_in_columns(fedrec: Cli, tmp_path: Path) -> None:
    """The name of worlds of any size was longer than its column, and moved all that stood behind it."""
    lines = fedrec("data", "list", "--data-dir", tmp_path).out.splitlines()
    titles = [line.title for line in listing(tmp_path)]
    assert {line.index(title) for line, title in zip(lines, titles, strict=True)} == {lines[0].index("Synthetic")}
    assert max(map(len, lines)) < 180


def test_listing_uses_the_default_directory(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("FEDREC_DATA", str(tmp_path))
    assert {line.folder for line in listing()} >= {tmp_path / "ml-1m"}


@given(st.lists(st.integers(-(10**25), 10**25), min_size=1, max_size=20, unique=True))
def test_numeric_ids_stand_in_numeric_order(numbers: list[int]) -> None:
    ids = np.array([str(number) for number in numbers], dtype=np.str_)
    assert [int(text) for text in ids[numeric_order(ids)]] == sorted(numbers)


def test_ids_are_kept_as_text(write: Write) -> None:
    data = load(str(write("a.csv", "user,item\n010,x\n9,x\n10,y\n")))
    assert data.user_ids.tolist() == ["9", "010", "10"]
    assert data.item_ids.tolist() == ["x", "y"]


def test_row_order_of_the_file_does_not_matter(write: Write) -> None:
    lines = [f"{u},{i},{u * 100 + i}" for u, i in zip(*np.nonzero(np.eye(9, k=1) + np.eye(9)), strict=True)]
    one = load(str(write("a.csv", "user,item,time\n" + "\n".join(lines))))
    two = load(str(write("b.csv", "user,item,time\n" + "\n".join(lines[::-1]))))
    assert np.array_equal(one.users, two.users)
    assert np.array_equal(one.items, two.items)
    assert np.array_equal(one.user_ids, two.user_ids)


def test_user_start_points_at_each_users_rows() -> None:
    data = scalable(users=50, items=40, interactions=400)
    start = data.user_start
    assert all((data.users[start[u] : start[u + 1]] == u).all() for u in range(50))
    assert data.with_notes("more").notes[-1] == "more"
