"""The verbs do what they say."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from command_line import Cli
from fedrec.data.load import load

KEYS = {
    "schema", "method", "protocol", "seed", "rounds", "selected_round", "data", "metrics", "seconds", "bytes",
    "memory", "settings", "versions",
}  # fmt: skip


def test_run_writes_the_promised_object(fedrec: Cli, tmp_path: Path) -> None:
    done = fedrec("run", "fedavg", "--rounds", "3", "--set", "dim=4", "--json", "r.json", "--out", "r")
    assert done.status == 0, done.err
    found = json.loads((tmp_path / "r.json").read_text())
    assert found.keys() >= KEYS
    assert found["data"] == {
        "name": "demo",
        "users": 120,
        "items": 160,
        "interactions": found["data"]["interactions"],
        "clients": 120,
    }
    assert found["seconds"].keys() >= {"total", "prepare", "train", "aggregate", "evaluate"}
    for part in ("test", "valid"):
        for k in (5, 10, 20):
            for name in ("HR", "NDCG", "Recall", "Precision", "F1", "MRR"):
                assert 0 <= found["metrics"][part][f"{name}@{k}"] <= 1
                assert 0 <= found["metrics"][part][f"{name}@{k}/99"] <= 1
    assert found["bytes"]["upload"] == 160 * 4 * 4 + 8
    assert found["settings"]["settings"]["dim"] == 4
    assert json.loads((tmp_path / "r" / "result.json").read_text())["metrics"] == found["metrics"]
    assert len((tmp_path / "r" / "rounds.jsonl").read_text().splitlines()) == 3


def test_the_same_seed_gives_the_same_result_and_a_finished_run_is_only_read(fedrec: Cli, tmp_path: Path) -> None:
    for name in ("a", "b"):
        assert fedrec("run", "fcf", "--rounds", "2", "--out", name, "--json", f"{name}.json", "--quiet").status == 0
    one, other = (json.loads((tmp_path / f"{n}.json").read_text())["metrics"] for n in "ab")
    assert one == other
    before = (tmp_path / "a" / "result.json").read_bytes()
    assert fedrec("run", "--resume", "a", "--quiet").status == 0
    assert (tmp_path / "a" / "result.json").read_bytes() == before


@pytest.mark.parametrize(
    "more",
    [("--rounds", "60"), ("--set", "dim=8"), ("--seed", "1"), ("--no-models",), ("--out", "b"), ("--data", "planted")],
    ids=" ".join,
)
def test_a_resumed_run_is_the_one_that_was_begun(fedrec: Cli, tmp_path: Path, more: tuple[str, ...]) -> None:
    """What was asked for beside was left out without a word, with exit status 0."""
    assert fedrec("run", "fcf", "--rounds", "1", "--out", "a", "--quiet").status == 0
    done = fedrec("run", "--resume", "a", *more)
    assert done.status == 2
    assert f"leave {'--models/--no-models' if more == ('--no-models',) else more[0]} out" in done.err
    assert [path.name for path in tmp_path.iterdir()] == ["a"]


def test_a_resumed_run_takes_what_is_of_this_machine(fedrec: Cli) -> None:
    assert fedrec("run", "fcf", "--rounds", "1", "--out", "a", "--quiet").status == 0
    assert fedrec("run", "--resume", "a", "--memory-mb", "64", "--checkpoint-seconds", "0", "--quiet").status == 0
    assert fedrec("run", "--resume", "a", "--memory-mb", "1", "--quiet").status == 2


@pytest.mark.parametrize(
    "more", [("fedavg",), ("--rounds", "9"), ("--deadline", "9"), ("--items", "x"), ("--out", "x")]
)
def test_a_federated_run_that_is_resumed_is_the_one_that_was_begun(fedrec: Cli, more: tuple[str, ...]) -> None:
    assert fedrec("run", "fcf", "--rounds", "1", "--out", "a", "--quiet").status == 0
    done = fedrec("deploy", "run", "--resume", "a", *more)
    assert done.status == 2
    assert "--resume continues a run as it was; leave" in done.err


@pytest.mark.parametrize("method", ["popularity", "ease", "gfcf", "mf", "fedavg", "local"])
def test_recommend_gives_items_the_user_does_not_have(fedrec: Cli, method: str) -> None:
    rounds = () if method in ("popularity", "ease", "gfcf") else ("--rounds", "2")
    assert fedrec("run", method, *rounds, "--out", "r", "--quiet").status == 0
    data = load("demo")
    user = 7
    done = fedrec("recommend", "r", "--user", data.user_ids[user], "-k", "10")
    assert done.status == 0, done.err
    lines = done.out.splitlines()
    assert len(lines) == 10
    owned = {str(data.item_ids[i]) for i in data.items[data.users == user]}
    assert data.titles is not None
    titles = {str(data.item_ids[i]): str(data.titles[i]) for i in range(data.n_items)}
    for line in lines:
        _, item, title = line.split(maxsplit=2)
        assert item not in owned
        assert title == titles[item]


def test_recommend_never_runs_out_of_range(fedrec: Cli) -> None:
    assert fedrec("run", "popularity", "--out", "r", "--quiet").status == 0
    done = fedrec("recommend", "r", "--user", load("demo").user_ids[0], "-k", "100000")
    assert done.status == 0
    assert len(done.out.splitlines()) < 160


def test_methods_lists_and_shows_cards(fedrec: Cli) -> None:
    listing = fedrec("methods").out
    for name in ("popularity", "ease", "local", "fedavg"):
        assert name in listing
    card = fedrec("methods", "fedavg").out
    for word in ("paper", "stays private", "is uploaded", "a sum suffices", "dim=16"):
        assert word in card


def test_data_lists_and_describes(fedrec: Cli) -> None:
    assert "ml-100k" in fedrec("data", "list").out
    assert "160" in fedrec("data", "describe", "demo").out


def test_own_data_in_a_file(fedrec: Cli, tmp_path: Path) -> None:
    rows = "".join(f"anna{u}\tbook{(u * 3 + i) % 20}\t{i}\n" for u in range(12) for i in range(8))
    (tmp_path / "mine.tsv").write_text("user\titem\ttimestamp\n" + rows)
    assert fedrec("run", "ease", "--data", "mine.tsv", "--out", "r", "--quiet").status == 0
    done = fedrec("recommend", "r", "--user", "anna3", "-k", "3")
    assert done.status == 0
    assert all(line.split()[1].startswith("book") for line in done.out.splitlines())


@pytest.mark.parametrize(
    "more", [("--participation", 0.5), ("--rest",), ("--robust", "median"), ("--robust-share", 0.3)]
)
def test_nobody_takes_part_in_a_centralised_run(fedrec: Cli, more: tuple[object, ...]) -> None:
    done = fedrec("run", "ease", *more)
    assert (done.status, done.out) == (2, "")
    assert done.err == f"fedrec: ease is centralised: no clients take part; leave {more[0]} out\n"


def test_a_failure_is_one_line_and_status_1(fedrec: Cli, monkeypatch: pytest.MonkeyPatch) -> None:
    from fedrec.methods.references.controls import Popularity

    def broken(*_: object) -> None:
        raise RuntimeError("the roof fell in")

    monkeypatch.setattr(Popularity, "step", broken)
    done = fedrec("run", "popularity", "--out", "r", "--quiet")
    assert done.status == 1
    assert "the roof fell in" in done.err
    assert "Traceback" not in done.err


def test_version_and_help(fedrec: Cli) -> None:
    assert "fedrec 0" in fedrec("--version").out
    helped = fedrec("--help").out
    for verb in ("run", "compare", "recommend", "methods", "data", "doctor"):
        assert verb in helped


def test_a_paper_protocol_says_what_is_wrong_with_it(fedrec: Cli) -> None:
    done = fedrec("run", "popularity", "--protocol", "paper-fedca", "--out", "r", "--quiet")
    assert done.status == 0
    assert "held-out" in done.out
