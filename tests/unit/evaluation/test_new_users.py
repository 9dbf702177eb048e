"""The protocol for somebody new: whole users are held out, and served by their history alone."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

import fedrec
from fedrec.core.population import newcomers, population
from fedrec.data.interactions import Interactions
from fedrec.data.load import load
from fedrec.errors import BadInput
from fedrec.evaluation.protocols import find
from fedrec.experiment.resolve import resolve
from fedrec.experiment.run import execute
from fedrec.methods.fedca.approx import FedCaApprox

PROTOCOL = "strict-new-users"


@pytest.mark.parametrize("timed", [True, False])
def test_new_users_are_drawn_whole_and_keep_all_but_one_item(timed: bool) -> None:
    data = load("demo")
    data = data if timed else replace(data, times=None)
    task = find(PROTOCOL).prepare(data, 5)
    people, new = population(task), newcomers(task)
    assert len(new.users) == 24
    assert sorted([*people.users, *new.users]) == list(range(data.n_users))
    assert people.world.n_users == 96
    assert (task.valid.counts[new.users] + task.test.counts[new.users] == 1).all()
    assert task.valid.counts.sum() == task.test.counts.sum() == 12
    assert not (task.valid.counts + task.test.counts)[people.users].any()
    counts = np.bincount(data.users, minlength=data.n_users)
    np.testing.assert_array_equal(people.block.train.counts, counts[people.users])  # trained on with all they have
    np.testing.assert_array_equal(new.block.train.counts, counts[new.users] - 1)
    for place, user in enumerate(new.users):
        held = np.concatenate([task.valid[user], task.test[user]])
        assert held[0] not in new.block.train[place]
        assert not timed or held[0] == data.items[data.users == user][-1]


def test_who_is_new_does_not_depend_on_the_order_of_rows_and_changes_with_the_seed() -> None:
    data = load("demo")
    backwards = np.lexsort((np.arange(len(data))[::-1], data.users))
    turned = replace(data, items=data.items[backwards], times=None if data.times is None else data.times[backwards])

    def new(found: Interactions, seed: int) -> list[int]:
        newcomers: list[int] = find(PROTOCOL).prepare(found, seed).newcomers.tolist()
        return newcomers

    assert new(data, 0) == new(turned, 0) != new(data, 1)


def test_nobody_new_reaches_training(tmp_path: Path) -> None:
    """Another history of a new user changes nothing that is learnt, and the new user's own list."""
    data = load("demo")
    task = find(PROTOCOL).prepare(data, 0)
    new = int(task.newcomers[0])
    rows = data.users == new
    assert data.times is not None
    columns = data.user_ids[data.users], data.item_ids[data.items], data.times
    lines = [f"{user},{item},{time}" for user, item, time in zip(*columns, strict=True)]
    changed = [line for line, own in zip(lines, rows, strict=True) if not own]
    others = [item for item in range(data.n_items) if item not in data.items[rows]][: int(rows.sum())]
    changed += [f"{data.user_ids[new]},{data.item_ids[item]},{n}" for n, item in enumerate(others)]
    models = []
    for name, content in (("a", lines), ("b", changed)):
        (tmp_path / f"{name}.csv").write_text("user,item,time\n" + "\n".join(content))
        result = fedrec.run("fedavg", data=tmp_path / f"{name}.csv", protocol=PROTOCOL, rounds=2, settings={"dim": 4})
        models.append(result.prepared.runtime.server.items)
        assert data.user_ids[new] not in result.recommender.user_ids
    np.testing.assert_array_equal(models[0], models[1])


@pytest.mark.parametrize("method", ["ease", "fedease", "fedspectral", "mf", "fedmf"])
def test_on_a_planted_world_somebody_new_is_served_better_than_by_popularity(method: str) -> None:
    rounds = {"mf": 20, "fedmf": 40, "fedspectral": 3}.get(method, 1)
    given = {"data": "planted", "protocol": PROTOCOL, "rounds": rounds, "evaluate_every": rounds}
    popular = execute(resolve("popularity", {"data": "planted", "protocol": PROTOCOL})).metrics["HR@10/99"]
    assert execute(resolve(method, given)).metrics["HR@10/99"] > popular + 0.1


def test_lists_of_numbers_are_not_averaged(monkeypatch: pytest.MonkeyPatch) -> None:
    """fedca-approx sends item numbers with its rows; without a word of its own on newcomers it is refused."""
    monkeypatch.setattr(FedCaApprox, "new_client", lambda self, server: None)
    chosen = {"data": "demo", "protocol": PROTOCOL, "rounds": 1, "settings": {"dim": 4, "rows": 8, "epochs": 1}}
    with pytest.raises(BadInput, match="fedca-approx sends every client something personal"):
        execute(resolve("fedca-approx", chosen))


def test_per_user_values_are_those_of_the_new_users(tmp_path: Path) -> None:
    result = fedrec.run("ease", data="demo", protocol=PROTOCOL, out=tmp_path / "run")
    assert result.folder is not None
    table = result.folder.per_user()
    assert len(table) == 120
    assert table["HR@10"].notna().sum() == 12
    assert result.json["data"]["users"] == 96


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"clients": 4}, "leave clients out"),
        ({"runtime": "flower"}, "--runtime simulate"),
        ({"data": "few.csv"}, "it needs 5 or more"),
    ],
)
def test_what_does_not_go_with_it_is_refused(
    options: dict[str, object], said: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "few.csv").write_text("user,item\n" + "".join(f"u{u},i{i}\n" for u in range(4) for i in range(u + 3)))
    with pytest.raises(BadInput, match=said):
        execute(resolve("fedavg", {"protocol": PROTOCOL, "data": "demo", **options}))
