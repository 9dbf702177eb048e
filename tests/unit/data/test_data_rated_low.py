"""What users rated too low to count: not learnt from, and not recommended to them either."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import fedrec
from data_files import Write
from fedrec.data.filters import at_least, replicate
from fedrec.data.interactions import Interactions
from fedrec.data.load import load
from fedrec.deploy.node.share import into_catalogue
from fedrec.errors import BadInput
from fedrec.experiment.update import update

HEAD = "user,item,rating,time\n"


def low(data: Interactions) -> dict[str, list[str]]:
    """Items rated too low, by user."""
    assert data.rated_low is not None
    users = zip(data.user_ids.tolist(), range(data.n_users), strict=True)
    found = {user: data.item_ids[data.rated_low[number]].tolist() for user, number in users}
    return {user: items for user, items in found.items() if items}


def test_they_are_kept_beside_what_counts(write: Write) -> None:
    path = write("a.csv", HEAD + "a,x,5,1\na,y,1,2\na,z,2,3\nb,x,4,1\nb,y,5,2\nc,x,1,1\nb,only,1,3\n")
    data = load(path, min_rating=4)
    assert low(data) == {"a": ["y"]}  # c is no user, z and only are no items: nobody likes them
    assert len(data) == 3
    assert load(path).rated_low is None
    assert low(load(write("b.csv", HEAD + "a,x,5,1\na,y,0,2\nb,y,3,1\n"))) == {"a": ["y"]}


@pytest.mark.parametrize(("ratings", "counts"), [((5, 1), False), ((1, 5), True)])
def test_the_last_rating_of_a_pair_is_what_a_user_thinks(write: Write, ratings: tuple[int, int], counts: bool) -> None:
    """The older 5 counted although the user had taken it back: what is too low went before repeats were merged."""
    rows = "".join(f"a,x,{rating},{time}\n" for time, rating in enumerate(ratings))
    data = load(write("a.csv", HEAD + rows + "a,y,5,7\nb,x,5,1\n"), min_rating=4)
    said = data.understood
    assert said is not None
    assert (said.merged, said.below_rating) == (1, 0 if counts else 1)
    assert len(data) == (3 if counts else 2)
    assert (None if data.rated_low is None else low(data)) == (None if counts else {"a": ["x"]})


def test_who_takes_back_everything_has_nothing(write: Write) -> None:
    with pytest.raises(BadInput, match=r"no user's last rating of an item is 4 or more"):
        load(write("a.csv", HEAD + "a,x,5,1\na,x,1,2\n"), min_rating=4)


def test_they_stay_with_their_users(write: Write) -> None:
    rows = "a,x,5,1\na,y,1,2\nb,x,5,1\nb,y,5,2\nb,z,1,3\nc,z,5,1\nc,x,5,2\n"
    data = load(write("a.csv", HEAD + rows), min_rating=4)
    assert low(data) == {"a": ["y"], "b": ["z"]}
    assert low(at_least(data, 2)) == {"b": ["z"]}
    assert low(replicate(data, 2)) == {"a": ["y"], "b": ["z"], "a#2": ["y"], "b#2": ["z"]}
    assert low(into_catalogue(data, ("new", "z", "y", "x"))) == {"a": ["y"], "b": ["z"]}
    alone = load(write("b.csv", HEAD + "a,y,1,1\na,x,5,2\na,z,5,2\nb,y,5,1\n"), min_rating=4)
    assert low(alone) == {"a": ["y"]}
    assert low(at_least(alone, 2)) == {}  # nobody who is left likes y: it is no item any more


def rows_of_rated(fresh: bool = False) -> str:
    """Twenty users who like eight of sixteen items each and rated two others 1."""
    drawn = np.random.default_rng(7)
    lines = []
    for user in range(20):
        chosen = drawn.permutation(16)[:10]
        lines += [f"u{user},i{item},{1 if place < 2 else 5},{place}" for place, item in enumerate(chosen)]
    return HEAD + "\n".join(lines + (["u0,fresh,5,99", "u1,fresh,1,99"] if fresh else [])) + "\n"


@pytest.mark.parametrize("histories", ["stored", "hashed"])
def test_they_are_not_recommended(
    write: Write, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, histories: str
) -> None:
    monkeypatch.setenv("FEDREC_CACHE", str(tmp_path / "cache"))
    path = write("rated.csv", rows_of_rated())
    given: dict[str, Any] = {"min_rating": 4, "min_interactions": 3, "histories": histories}
    run = fedrec.run("fedspectral", str(path), out=tmp_path / "run", **given)
    had: dict[str, set[str]] = {}
    for line in rows_of_rated().splitlines()[1:]:
        had.setdefault(line.split(",")[0], set()).add(line.split(",")[1])
    for user, items in had.items():
        listed = {one.item for one in run.recommend(user, k=16)}
        assert len(listed) == 6
        assert not listed & items


def test_an_update_has_them_too(write: Write, tmp_path: Path) -> None:
    path = write("rated.csv", rows_of_rated())
    fedrec.run(
        "fedmf", str(path), out=tmp_path / "run", min_rating=4, min_interactions=3, rounds=2, settings={"dim": 2}
    )
    write("rated.csv", rows_of_rated(fresh=True))
    new = update(tmp_path / "run", out=tmp_path / "new")
    assert json.loads((tmp_path / "new" / "result.json").read_text())["origin"]["added"]["interactions"] == 1
    assert "fresh" not in {one.item for user in ("u0", "u1") for one in new.recommend(user, k=17)}
    assert "fresh" in {one.item for one in new.recommend("u2", k=17)}


def test_what_was_learnt_and_then_rated_low_cannot_be_taken_back(write: Write, tmp_path: Path) -> None:
    path = write("rated.csv", rows_of_rated())
    fedrec.run(
        "fedmf", str(path), out=tmp_path / "run", min_rating=4, min_interactions=3, rounds=2, settings={"dim": 2}
    )
    lines = rows_of_rated().splitlines()  # the fifth of ten is learnt from: the last two are held out
    lines[5] = lines[5].replace(",5,", ",1,")
    write("rated.csv", "\n".join(lines) + "\n")
    with pytest.raises(BadInput, match=r"learnt from 1 interaction that is rated too low to count now"):
        update(tmp_path / "run", out=tmp_path / "new")


def test_ratings_that_are_too_low_are_nothing_to_learn_but_not_nothing(write: Write, tmp_path: Path) -> None:
    path = write("rated.csv", rows_of_rated())
    fedrec.run(
        "fedmf", str(path), out=tmp_path / "run", min_rating=4, min_interactions=3, rounds=2, settings={"dim": 2}
    )
    had = {line.split(",")[1] for line in rows_of_rated().splitlines() if line.startswith("u0,")}
    other = next(f"i{number}" for number in range(16) if f"i{number}" not in had)
    write("rated.csv", rows_of_rated() + f"u0,{other},1,99\n")
    with pytest.raises(BadInput, match="has new ratings, but they are too low to count"):
        update(tmp_path / "run", out=tmp_path / "new")
