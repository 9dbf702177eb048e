"""``fedrec update`` as people meet it, and a service that takes the updated model over."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from command_line import Cli
from fedrec.experiment import run as running
from fedrec.runs.origin import Origin
from fedrec.runs.sealed import digest_of
from fedrec.serve.sources import RunSource

ROWS = [(f"u{user:02}", f"i{(user * 7 + n * (n + 1) // 2) % 40:02}", n) for user in range(30) for n in range(9)]
FAST = ("--rounds", 5, "--set", "dim=4", "--quiet")


def write(rows: list[tuple[str, str, int]]) -> None:
    Path("own.csv").write_text("user,item,time\n" + "".join(f"{u},{i},{t}\n" for u, i, t in rows))


@pytest.fixture
def updated(fedrec: Cli) -> Cli:
    """A run whose file has grown by an interaction of somebody, and by a new user with a new item."""
    write(ROWS)
    assert fedrec("run", "fedavg", "--data", "own.csv", "--out", "runs/a", *FAST).status == 0
    write([*ROWS, ("u03", "i39", 99), *(("new", item, 1) for item in ("i01", "i02", "new"))])
    return fedrec


def test_it_says_what_was_added_and_goes_on_beside_the_run(updated: Cli) -> None:
    source, alone = RunSource(Path("runs/a"), follow=True), RunSource(Path("runs/a"))
    before, model = source.mark(), source.open()
    done = updated("update", "runs/a/", "--json", "new.json")
    assert done.status == 0, done.err
    assert "added: 1 user, 1 item, 4 interactions since runs/a" in done.err
    assert "before: valid HR@10/99" in done.err
    assert "a-updated" in done.out
    result = json.loads(Path("new.json").read_text())
    assert (result["rounds"], result["origin"]["added"]["users"]) == (6, 1)  # a fifth of five rounds more
    assert updated("recommend", "runs/a-updated", "--user", "new").status == 0
    assert updated("update", "runs/a", "--quiet").err == ""
    assert Path("runs/a-updated-2").is_dir()
    assert source.mark() != before
    assert "new" in source.open().recommender.user_ids
    assert "new" not in model.recommender.user_ids
    assert alone.mark() == before  # only who is asked to follow does


@pytest.mark.parametrize(
    ("method", "rows", "reason"),
    [
        (
            "fedavg",
            [(u, i.replace("i", "x"), t) for u, i, t in ROWS],
            "it has no item 'i00', one of 40 that are missing",
        ),
        (
            "fedavg",
            [(u.replace("u", "v"), i, t) for u, i, t in ROWS],
            "30 of the 30 users are missing",
        ),
        ("popularity", ROWS, "its method is popularity, not fedavg"),
    ],
)
def test_a_stranger_beside_the_run_is_not_followed(
    fedrec: Cli, caplog: pytest.LogCaptureFixture, method: str, rows: list[tuple[str, str, int]], reason: str
) -> None:
    write(ROWS)
    assert fedrec("run", "fedavg", "--data", "own.csv", "--out", "runs/a", *FAST).status == 0
    write(rows)
    fast = FAST if method == "fedavg" else ()
    assert fedrec("run", method, "--data", "own.csv", "--out", "runs/b", *fast).status == 0
    said = Origin("a", digest_of(Path("runs/a/result.json")), 5, False, 0, {"users": 0, "items": 0, "interactions": 1})
    said.write(Path("runs/b"))
    source = RunSource(Path("runs/a"), follow=True)
    assert [source.mark()[0].name, source.mark()[0].name] == ["a", "a"]
    assert set(source.open().recommender.user_ids) == {user for user, _, _ in ROWS}
    assert [record.getMessage().rpartition(": ")[2] for record in caplog.records] == [reason]


def test_nothing_new_is_one_line(fedrec: Cli) -> None:
    write(ROWS)
    fedrec("run", "popularity", "--data", "own.csv", "--out", "a")
    done = fedrec("update", "a")
    assert (done.status, done.out) == (2, "")
    assert done.err == "fedrec: nothing new: own.csv is what a learnt from; add interactions, or give --data\n"
    assert not Path("a-updated").exists()


def test_an_interrupt_says_how_to_go_on(updated: Cli, monkeypatch: pytest.MonkeyPatch) -> None:
    def stop(*_: object) -> None:
        raise KeyboardInterrupt

    with monkeypatch.context() as patched:
        patched.setattr(running, "carry_out", stop)
        done = updated("update", "runs/a", "--out", "b", "--rounds", 2)
    assert done.status == 130
    assert "`fedrec run --resume b` goes on" in done.err
    assert updated("run", "--resume", "b").status == 0
