"""A model needs no data file: edited, appended, moved or gone, it recommends as before; training does notice."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import fedrec
from fedrec.core.loop import Progress, Record
from fedrec.errors import BadInput
from fedrec.experiment.resolve import resolve
from fedrec.experiment.run import execute, resume
from killed import Killed

ROWS = [
    (f"u{user}", f"i{(user * 7 + step * (step + 1) // 2) % 40}", 100 * user + step)
    for user in range(30)
    for step in range(9)
]


def kill(record: Record, progress: Progress) -> None:
    if record.round == 2:
        raise Killed


def write(path: Path, rows: list[tuple[str, str, int]]) -> None:
    path.write_text("user,item,time\n" + "".join(f"{u},{i},{t}\n" for u, i, t in rows))


@pytest.fixture
def csv(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    write(tmp_path / "own.csv", ROWS)
    return tmp_path / "own.csv"


def lists(folder: Path | str) -> list[list[tuple[str, float]]]:
    run = fedrec.open_run(folder)
    return [[(r.item, r.score) for r in run.recommend(user, 5)] for user in ("u3", "u17")]


def edited(path: Path) -> None:
    """As many users, items and interactions, other pairs."""
    write(path, [(u, i if u != "u3" else f"i{(int(i[1:]) + 1) % 40}", t) for u, i, t in ROWS])


def appended(path: Path) -> None:
    write(path, [*ROWS, ("u3", "i39", 9999)])


def gone(path: Path) -> None:
    path.unlink()


@pytest.mark.parametrize("method", ["fedavg", "ease"])
@pytest.mark.parametrize("change", [edited, appended, gone])
def test_a_model_recommends_as_before_whatever_happens_to_its_data(
    csv: Path, method: str, change: Callable[[Path], None]
) -> None:
    rounds = {} if method == "ease" else {"rounds": 2, "settings": {"dim": 4}}
    result = fedrec.run(method, data="own.csv", out="run", **rounds)  # type: ignore[arg-type]
    before = [[(r.item, r.score) for r in result.recommend(user, 5)] for user in ("u3", "u17")]
    change(csv)
    assert lists("run") == before


def test_a_model_works_from_another_folder_and_after_it_was_moved(
    csv: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    fedrec.run("fedavg", data="own.csv", rounds=2, out="run", settings={"dim": 4})
    before = lists("run")
    (tmp_path / "far").mkdir()
    monkeypatch.chdir(tmp_path / "far")
    assert lists(tmp_path / "run") == before
    shutil.move(tmp_path / "run", tmp_path / "far" / "moved")
    csv.unlink()
    assert lists("moved") == before


@pytest.mark.parametrize(
    ("change", "said"),
    [
        (edited, "as many users, items and interactions, but users have other items"),
        (appended, "270 interactions then, 271 now"),
        (lambda path: write(path, [(u, i, -t) for u, i, t in ROWS]), "but its times are others"),
    ],
)
def test_a_run_does_not_go_on_with_other_data(csv: Path, change: Callable[[Path], None], said: str) -> None:
    settings = resolve("fedavg", {"data": "own.csv", "rounds": 4, "settings": {"dim": 4}, "checkpoint_seconds": 0})
    with pytest.raises(Killed):
        execute(settings, Path("run"), kill)
    change(csv)
    with pytest.raises(BadInput, match=said) as caught:
        resume(Path("run"))
    assert "\n" not in str(caught.value)
    write(csv, ROWS[::-1])  # the same interactions in another order of rows
    assert resume(Path("run")).json["rounds"] == 4


def test_a_run_goes_on_from_another_folder(csv: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    settings = resolve("fedavg", {"data": "own.csv", "rounds": 3, "settings": {"dim": 4}, "checkpoint_seconds": 0})
    with pytest.raises(Killed):
        execute(settings, Path("run"), kill)
    (tmp_path / "far").mkdir()
    monkeypatch.chdir(tmp_path / "far")
    assert resume(tmp_path / "run").json["rounds"] == 3


@pytest.mark.parametrize("method", ["fedavg", "ease", "fedspectral"])
def test_hashed_histories_name_no_item_and_serve_who_has_the_key(
    csv: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, method: str
) -> None:
    monkeypatch.setenv("FEDREC_HISTORY_KEY", str(tmp_path / "keys" / "one.key"))
    rounds: dict[str, Any] = {} if method == "ease" else {"rounds": 2}
    result = fedrec.run(method, data="own.csv", out="run", histories="hashed", **rounds)
    before = [[(r.item, r.score) for r in result.recommend(user, 5)] for user in ("u3", "u17")]
    assert lists("run") == before
    known = fedrec.open_run("run").recommender.known
    assert not known.people.block.train.values.any()  # nothing is there before somebody asks
    assert (tmp_path / "keys" / "one.key").stat().st_mode & 0o77 == 0
    key = (tmp_path / "keys" / "one.key").read_text()
    (tmp_path / "keys" / "one.key").write_text("00" * 32)
    with pytest.raises(BadInput, match="key of its histories is another one"):
        lists("run")
    (tmp_path / "keys" / "one.key").unlink()
    with pytest.raises(BadInput, match="FEDREC_HISTORY_KEY"):
        lists("run")
    (tmp_path / "keys" / "one.key").write_text(key)
    assert lists("run") == before


def test_the_negatives_of_a_stored_model_are_those_of_its_protocol(csv: Path) -> None:
    """PFedRec tunes the table before it recommends, on samples drawn by what may be drawn."""
    for protocol in ("strict", "paper-fediar"):
        result = fedrec.run("pfedrec", data="own.csv", rounds=1, out=protocol, protocol=protocol)
        again = fedrec.open_run(protocol).recommender.known.people.block
        block = result.prepared.people.block
        np.testing.assert_array_equal(again.exclude.values, block.exclude.values)
        np.testing.assert_array_equal(again.train.values, block.train.values)
        np.testing.assert_array_equal(again.user_keys, block.user_keys)
        assert lists(protocol) == [[(r.item, r.score) for r in result.recommend(u, 5)] for u in ("u3", "u17")]


def test_clients_with_several_users_stand_alone_too(csv: Path) -> None:
    result = fedrec.run("fedavg", data="own.csv", rounds=2, out="run", clients=4, settings={"dim": 4})
    everyone = [str(user) for user in fedrec.load("own.csv").user_ids]
    before = {user: [r.item for r in result.recommend(user, 5)] for user in everyone}
    csv.unlink()
    again = fedrec.open_run("run")
    assert {user: [r.item for r in again.recommend(user, 5)] for user in everyone} == before
    order = again.recommender.positions(everyone[::-3])
    tops = list(again.recommender.stream(everyone[::-3], 5))
    assert [str(again.recommender.item_ids[i]) for i in tops[0].items[2]] == before[everyone[::-3][2]]
    assert (np.concatenate([top.users for top in tops]) == order).all()


def test_titles_come_along(tmp_path: Path) -> None:
    fedrec.run("popularity", data="demo", out=tmp_path / "run")
    assert all(r.title for r in fedrec.open_run(tmp_path / "run").recommend("u001", 3))


@pytest.mark.parametrize("name", ["data.safetensors", "data.json"])
def test_a_damaged_or_missing_file_is_named(tmp_path: Path, name: str) -> None:
    fedrec.run("popularity", data="demo", out=tmp_path / "run")
    path = tmp_path / "run" / name
    whole = path.read_bytes()
    path.write_bytes(whole[:-9] + bytes([whole[-9] ^ 1]) + whole[-8:])

    def read() -> Any:
        run = fedrec.open_run(tmp_path / "run")
        return run.recommend("u001") if name == "data.safetensors" else run.prepared

    with pytest.raises(BadInput, match=name):
        read()
    path.unlink()
    with pytest.raises(BadInput, match=name):
        read()


def test_a_run_without_a_model_says_so(tmp_path: Path) -> None:
    fedrec.run("popularity", data="demo", out=tmp_path / "run", keep_selected=False)
    with pytest.raises(BadInput, match="no saved model"):
        fedrec.open_run(tmp_path / "run").recommend("u001")


def test_an_unknown_user_is_refused_without_naming_others(tmp_path: Path) -> None:
    fedrec.run("popularity", data="demo", out=tmp_path / "run")
    with pytest.raises(BadInput) as caught:
        fedrec.open_run(tmp_path / "run").recommend("u0001")
    users = fedrec.load("demo").user_ids.tolist()
    assert "'u0001'" in str(caught.value)
    assert not [user for user in users if f"'{user}'" in str(caught.value)]


def test_the_fingerprint_is_kept_beside_the_run(csv: Path) -> None:
    fedrec.run("popularity", data="own.csv", out="run")
    said = json.loads(Path("run/data.json").read_text())
    assert said["counts"] == {"users": 30, "items": 40, "interactions": 270}
    assert said["path"] == str(csv)
