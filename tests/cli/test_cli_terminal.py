"""What a person sees: control characters of the data do not reach the terminal, and an empty answer has a reason."""

from __future__ import annotations

import json
import unicodedata
from pathlib import Path

import pytest

import fedrec as package
from command_line import Cli
from fedrec.errors import BadInput

HOSTILE = "Film\n{} \x1b[31mred\x07 \u202etxt\x9b"
FAST = ("--protocol", "strict", "--rounds", "1", "--quiet")


@pytest.fixture
def run(tmp_path: Path, fedrec: Cli) -> str:
    """User ``all`` has every item; titles are hostile."""
    pairs = [(f"u{u}", u + i) for u in range(8) for i in range(6)] + [("all", i) for i in range(13)]
    rows = "".join(f'{user},i{item},"{HOSTILE.format(item)}"\n' for user, item in pairs)
    (tmp_path / "data.csv").write_text("user,item,title\n" + rows, encoding="utf-8")
    done = fedrec("run", "popularity", "--data", "data.csv", "--out", "r", "--quiet")
    assert done.status == 0, done.err
    return "r"


def test_titles_cannot_steer_a_terminal(run: str, fedrec: Cli, tmp_path: Path) -> None:
    done = fedrec("recommend", run, "--user", "u1", "-k", "3")
    assert len(done.out.splitlines()) == 3
    assert "\ufffd[31mred" in done.out
    assert not [one for one in done.out if unicodedata.category(one) in ("Cc", "Cf") and one != "\n"]
    assert fedrec("recommend", run, "--user", "u1", "-k", "3", "--out", "e.jsonl").status == 0
    row = json.loads((tmp_path / "e.jsonl").read_text(encoding="utf-8").splitlines()[0])
    assert "\x1b[31mred\x07" in row["title"]  # a file has what the data has


def test_an_error_about_such_words_is_one_line(run: str, fedrec: Cli) -> None:
    done = fedrec("recommend", "r\x1b[31m\nx", "--user", "u1")
    assert (done.status, done.err.count("\n"), done.err.count("\x1b")) == (2, 1, 0)


def test_nothing_left_has_a_reason(run: str, fedrec: Cli, tmp_path: Path) -> None:
    done = fedrec("recommend", run, "--user", "all")
    assert (done.status, done.out) == (0, "")
    assert done.err == "fedrec: nothing is left to recommend: user all has every item\n"
    (tmp_path / "only.txt").write_text("i1\n")
    done = fedrec("recommend", run, "--user", "u1", "--only", "only.txt")
    assert done.err == "fedrec: nothing is left to recommend: user u1 has every item that --only and --exclude leave\n"
    (tmp_path / "all.txt").write_text("".join(f"i{number}\n" for number in range(13)))
    done = fedrec("recommend", run, "--history", "all.txt")
    assert done.err == "fedrec: nothing is left to recommend: who has this history has every item\n"


@pytest.mark.parametrize("end", ["jsonl", "csv", "parquet"])
def test_a_table_without_rows(run: str, fedrec: Cli, tmp_path: Path, end: str) -> None:
    done = fedrec("recommend", run, "--user", "all", "--out", f"e.{end}", "--quiet")
    assert done.status == 0
    assert done.err == "fedrec: nothing is left to recommend where the user has every item: no rows\n"
    assert (tmp_path / "e.jsonl").read_text() == "" if end == "jsonl" else (tmp_path / f"e.{end}").stat().st_size
    done = fedrec("recommend", run, "--all", "--out", f"all.{end}", "--quiet")
    assert "where 1 of 9 users have every item: no rows" in done.err


@pytest.mark.parametrize("value", ["abc", "0", "-1", "1.5", "9" * 30])
def test_a_number_of_threads_that_is_none(
    fedrec: Cli, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, value: str
) -> None:
    monkeypatch.setenv("FEDREC_THREADS", value)
    done = fedrec("run", "fedavg", *FAST, "--out", "x")
    assert (done.status, done.err.count("\n")) == (2, 1)
    assert f"FEDREC_THREADS='{value}' is not a number of threads; write 1 to" in done.err
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize("k", ["3", 2.5, None, True])
def test_a_number_of_items_that_is_none(run: str, k: object) -> None:
    found = package.open_run(run)
    for ask in (lambda: found.recommend("u1", k=k), lambda: found.recommend_history(["i1"], k=k)):  # type: ignore
        with pytest.raises(BadInput, match="give a whole number of items"):
            ask()
