"""A finished run goes on when its data has grown: nothing that was learnt is lost or moves to another item or user."""

from __future__ import annotations

import dataclasses
import shutil
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import fedrec
from fedrec.core.loop import Progress, Record
from fedrec.core.messages import Axis, fields_of
from fedrec.data.load import load
from fedrec.errors import BadInput
from fedrec.experiment.run import resume
from fedrec.experiment.update import update
from fedrec.runs.folder import RunFolder
from fedrec.serve.sources import RunSource
from killed import Killed

Row = tuple[str, str, int]
NEW_USERS, NEW_ITEMS = {"u000", "u077"}, {"i000", "i050"}
"""Their ids lie before and between those of the others, so that every number changes."""


def planted() -> list[Row]:
    """A planted world with 120 users and 120 items: an axis of 120 may count either."""
    data = load("planted")
    times = range(len(data))
    return [
        (f"u{u:03}", f"i{i:03}", t) for u, i, t in zip(data.users.tolist(), data.items.tolist(), times, strict=True)
    ]


def served(run: str) -> str:
    """The folder that a service takes its model from."""
    return str(RunSource(Path(run), follow=True).mark()[0].name)


ROWS = planted()
LAST = {user: max(t for u, _, t in ROWS if u == user) for user in {u for u, _, _ in ROWS}}
FIRST = [(u, i, t) for u, i, t in ROWS if u not in NEW_USERS and i not in NEW_ITEMS and t < LAST[u]]


def write(path: Path, rows: list[Row]) -> None:
    path.write_text("user,item,time\n" + "".join(f"{u},{i},{t}\n" for u, i, t in rows))


@pytest.fixture
def csv(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    write(tmp_path / "own.csv", FIRST)
    return tmp_path / "own.csv"


SMALL: dict[str, dict[str, Any]] = {
    "fedmf": {"dim": 4},
    "pfedrec": {"dim": 4},
    "fedrap": {"dim": 4},
    "fedca": {"dim": 4},
    "fedca-approx": {"dim": 4, "neighbours": 6, "rows": 20},
    "cofedrec": {"dim": 4},
    "fediar": {"dim": 4, "warmup": 1, "clusters": 4},
    "fedcia": {"dim": 4, "backbone": "mf", "lr": 0.05, "init_scale": 0.1},
    "feddae": {"dim": 4},
    "fedvae": {"dim": 4},
    "mf": {"dim": 4},
}


@pytest.mark.parametrize("method", SMALL)
def test_all_that_was_learnt_keeps_its_item_client_user_and_interaction(
    csv: Path, method: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    before = fedrec.run(method, "own.csv", rounds=2, out="run", settings=SMALL[method])
    write(csv, ROWS)
    started: list[Any] = []

    def keep(prepared: Any, progress: Progress) -> None:
        started.append((prepared, progress.state))

    after = update(Path("run"), rounds=1, on_start=keep)
    prepared, state = started[0]
    assert before.made is not None
    old, new = before.made.people, prepared.people
    assert (new.world.n_users - old.world.n_users, new.world.n_items - old.world.n_items) == (2, 2)
    items = np.searchsorted(prepared.task.data.item_ids, before.made.task.data.item_ids)
    clients = np.searchsorted(new.client_ids, old.client_ids)
    learnt = RunFolder.open(Path("run")).model(before.made.runtime.expected())
    if method == "mf":
        assert np.array_equal(state["model"].items[items], learnt["model"].items)
        assert np.array_equal(state["model"].users[clients], learnt["model"].users)
    else:
        assert_carried(state, learnt, items, clients)
    assert (after.json["rounds"], after.json["origin"]["rounds"]) == (3, 2)
    assert after.json["origin"]["added"]["users"] == 2


def assert_carried(state: Any, learnt: Any, items: Any, clients: Any) -> None:
    """Private state stands with its client; item tables, wherever they are, with their items."""
    compared = 0
    for (name, axis, now), (_, _, then) in zip(fields_of(state["private"]), fields_of(learnt["private"]), strict=True):
        if not isinstance(now, np.ndarray) or axis is Axis.INTERACTION or name == "ids":
            continue
        part = now[clients]
        part = part[:, items] if name == "tables" else part
        assert np.array_equal(part, then), name
        compared += 1
    for field in dataclasses.fields(state["server"]):
        now, then = getattr(state["server"], field.name), getattr(learnt["server"], field.name)
        if field.name in ("items", "base", "first"):
            assert np.array_equal(now[items], then), field.name
            compared += 1
        if field.name == "tables":
            assert np.array_equal(now[clients][:, items], then)
        if field.name == "nets":
            assert np.array_equal(now["items_in"][items], then["items_in"])
            compared += 1
    assert compared


def test_private_rows_of_interactions_stand_with_their_interactions(csv: Path) -> None:
    before = fedrec.run("feddae", "own.csv", rounds=2, out="run", settings={"dim": 4})
    write(csv, ROWS)
    found: list[Any] = []
    update(Path("run"), rounds=1, on_start=lambda prepared, progress: found.append((prepared.people, progress.state)))
    people, state = found[0]
    assert before.made is not None
    old = before.made
    learnt = RunFolder.open(Path("run")).model(old.runtime.expected())["private"].rows
    user, client = 5, old.people.client_ids[5]
    place = people.client_ids.index(client)
    for position in range(*old.people.block.train.start[user : user + 2]):
        item = f"i{int(old.task.data.item_ids[old.people.block.train.values[position]][1:]):03}"
        own = people.block.train[place]
        names = [load("own.csv").item_ids[number] for number in own]
        at = int(people.block.train.start[place]) + names.index(item)
        assert np.array_equal(state["private"].rows[at], learnt[position])


@pytest.mark.parametrize("method", ["fedspectral", "fedease"])
def test_a_closed_form_is_computed_again(csv: Path, method: str) -> None:
    rounds = {"rounds": 3} if method == "fedspectral" else {}
    settings = {"k": 8} if method == "fedspectral" else {}
    fedrec.run(method, "own.csv", out="run", settings=settings, **rounds)  # type: ignore[arg-type]
    write(csv, ROWS)
    updated = fedrec.update("run", out="new")
    fresh = fedrec.run(method, "own.csv", settings=settings, **rounds)  # type: ignore[arg-type]
    assert updated.metrics == fresh.metrics
    assert updated.json["origin"]["starts_over"]
    assert updated.recommend("u000", 3) == fresh.recommend("u000", 3)


def test_quality_is_not_lost_and_the_old_folder_is_untouched(csv: Path) -> None:
    settings = {"dim": 8, "lr": 0.1, "epochs": 5}
    before = fedrec.run("fedavg", "own.csv", rounds=20, out="run", settings=settings)
    files = {path.name: path.read_bytes() for path in Path("run").iterdir()}
    write(csv, ROWS)
    after = fedrec.update(before, rounds=5, out="new")
    start = after.rounds[0]
    assert (start.round, start.participants) == (20, 0)
    assert start.valid is not None
    assert after.json["metrics"]["valid"]["NDCG@10"] >= start.valid["NDCG@10"]
    assert after.metrics["HR@10/99"] >= before.metrics["HR@10/99"] - 0.1
    assert {path.name: path.read_bytes() for path in Path("run").iterdir()} == files
    assert fedrec.open_run("new").recommend("u077", 3)
    assert served("run") == "new"


def test_only_interactions_were_added_and_an_update_of_an_update(csv: Path) -> None:
    fedrec.run("fedavg", "own.csv", rounds=2, out="run", settings={"dim": 4})
    here = {(u, i) for u, i, _ in FIRST}
    more = next((u, i, 10**6) for u, _, _ in FIRST for _, i, _ in FIRST if (u, i) not in here)
    write(csv, [*FIRST, more])
    first = fedrec.update("run", rounds=1, out="a")
    assert first.json["origin"]["added"] == {"users": 0, "items": 0, "interactions": 1}
    write(csv, [*FIRST, more, ("somebody", "i001", 10**6), ("somebody", "i002", 10**6), ("somebody", "i003", 10**6)])
    second = fedrec.update("a", rounds=2, out="b")
    assert (second.json["rounds"], second.json["origin"]["rounds"]) == (5, 3)
    assert [int(number) for number in second.history["round"]] == [3, 4, 5]
    assert served("run") == "b"


def test_moved_folders_keep_their_chain(csv: Path, tmp_path: Path) -> None:
    fedrec.run("fedavg", "own.csv", rounds=1, out="runs/run", settings={"dim": 4})
    write(csv, ROWS)
    shutil.move("runs", "elsewhere")
    fedrec.update("elsewhere/run", data=tmp_path / "own.csv", rounds=1, out="elsewhere/new")
    shutil.move("elsewhere", "again")
    assert served("again/run") == "new"
    shutil.rmtree("again/new")
    assert served("again/run") == "run"


def test_an_interrupted_update_goes_on_to_the_same_end(csv: Path) -> None:
    options: dict[str, Any] = {"rounds": 2, "settings": {"dim": 4}, "checkpoint_seconds": 0}
    fedrec.run("fedavg", "own.csv", out="run", **options)
    write(csv, ROWS)
    whole = fedrec.update("run", rounds=3, out="whole")

    def kill(record: Record, progress: Progress) -> None:
        if record.round == 4:
            raise Killed

    with pytest.raises(Killed):
        update(Path("run"), rounds=3, out=Path("new"), on_round=kill)
    again = resume(Path("new"))
    assert again.metrics == whole.metrics
    assert again.json["origin"] == whole.json["origin"]
    logs = [RunFolder.open(Path(name)).records() for name in ("whole", "new")]
    rounds = [[(one["round"], one["participants"] > 0) for one in log] for log in logs]
    assert rounds[0] == [(2, False), (3, True), (4, True), (5, True)]  # with where it starts
    assert rounds[1] == rounds[0]


def test_an_update_that_was_killed_before_its_first_round(csv: Path) -> None:
    fedrec.run("fedavg", "own.csv", rounds=2, out="run", settings={"dim": 4})
    write(csv, ROWS)
    whole = fedrec.update("run", rounds=1)

    def kill(prepared: Any, progress: Progress) -> None:
        raise Killed

    with pytest.raises(Killed):
        update(Path("run"), rounds=1, out=Path("new"), on_start=kill)
    assert resume(Path("new")).metrics == whole.metrics
    with pytest.raises(Killed):
        update(Path("run"), rounds=1, out=Path("lost"), on_start=kill)
    Path("lost/checkpoint.safetensors").unlink()
    with pytest.raises(BadInput, match="and this update continues from it; repeat it: fedrec update"):
        resume(Path("lost"))


@pytest.mark.parametrize(
    ("rows", "said"),
    [
        (FIRST, "nothing new: own.csv is what run learnt from"),
        ([(u, i, -t) for u, i, t in FIRST], "nothing new: own.csv has the interactions"),
        (FIRST[1:], "learnt from 1 interaction that own.csv no longer has"),
        ([row for row in ROWS if row[0] != "u003"], "learnt from 1 user that own.csv no longer has"),
        ([row for row in ROWS if row[1] != "i003"], "1 item and "),
        ([(*FIRST[0][:1], "i000", 0), *FIRST[1:]], "learnt from 1 interaction that own.csv no longer has"),
    ],
)
def test_what_is_no_addition_is_refused_with_a_line_that_names_nobody(csv: Path, rows: list[Row], said: str) -> None:
    fedrec.run("popularity", "own.csv", out="run")
    write(csv, rows)
    with pytest.raises(BadInput) as refused:
        fedrec.update("run", out="new")
    assert said in str(refused.value)
    assert len(str(refused.value)) <= 300
    assert not {"u001", "u003", "i003"} & set(str(refused.value).split())
    assert not Path("new").exists()


def test_runs_that_cannot_go_on_say_why(csv: Path) -> None:
    fedrec.run("popularity", "own.csv", out="none", keep_selected=False)
    write(csv, ROWS)
    with pytest.raises(BadInput, match="does not say what its users had"):
        fedrec.update("none")
    with pytest.raises(BadInput, match="this run was not kept"):
        fedrec.update(fedrec.run("popularity", "own.csv"))
    with pytest.raises(BadInput, match="at least one round"):
        fedrec.update("none", rounds=0)
    with pytest.raises(BadInput, match="is not a run's folder"):
        fedrec.update("nowhere")


def test_the_privacy_card_counts_the_rounds_of_before(csv: Path) -> None:
    settings = {"dim": 4, "clip": 1.0, "noise": 1.0, "noise_kind": "gaussian"}
    before = fedrec.run("fedavg", "own.csv", rounds=2, out="run", settings=settings)
    write(csv, ROWS)
    after = fedrec.update(before, rounds=2)
    four = fedrec.run("fedavg", "own.csv", rounds=4, settings=settings)
    spent = [run.json["privacy_card"]["epsilon"] for run in (before, after, four)]
    assert spent[0] < spent[1] == pytest.approx(spent[2], rel=0.05)


def test_clients_with_several_users(csv: Path) -> None:
    def given(rows: list[Row]) -> None:
        lines = (f"{u},{i},{t},{int(u[1:]) % 7}\n" for u, i, t in rows)
        csv.write_text("user,item,time,client\n" + "".join(lines))

    given(FIRST)
    fedrec.run("fedrap", "own.csv", rounds=1, out="run", settings={"dim": 4})
    fedrec.run("popularity", "own.csv", out="dealt", clients=5)
    given(ROWS)
    assert fedrec.update("run", rounds=1).json["data"]["clients"] == 7
    with pytest.raises(BadInput, match=r"users of dealt belong to other clients now \(--clients spreads users anew"):
        fedrec.update("dealt")


def test_hashed_histories_and_held_out_items_that_were_learnt_from(
    csv: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("FEDREC_HISTORY_KEY", str(tmp_path / "key"))

    options: dict[str, Any] = {"settings": {"dim": 4}, "histories": "hashed"}
    fedrec.run("fedavg", "own.csv", rounds=1, out="run", **options)
    write(csv, [*ROWS, (*FIRST[0][:2], 10**6)])  # once more: the last time wins
    assert fedrec.update("run", rounds=1, out="new").json["origin"]["seen"] == 1
    assert b"u005" not in (Path("new") / "origin.json").read_bytes()
