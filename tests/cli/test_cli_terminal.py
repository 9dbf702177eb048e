"""What a person sees: control characters of the data do not reach the terminal, and an empty answer has a reason."""

from __future__ import annotations

import contextlib
import io
import json
import os
import subprocess
import sys
import unicodedata
from pathlib import Path

import pytest

import fedrec as package
from command_line import Cli
from fedrec.cli.main import main
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


def in_c_locale(*words: str, cwd: Path) -> subprocess.CompletedProcess[bytes]:
    """As in a minimal container: no language is set, and Python is told not to choose UTF-8 for itself."""
    environment = {name: value for name, value in os.environ.items() if not name.startswith(("LC_", "LANG"))}
    environment |= {"LC_ALL": "C", "PYTHONUTF8": "0", "PYTHONCOERCECLOCALE": "0"}
    command = [sys.executable, "-m", "fedrec", *words]
    return subprocess.run(command, cwd=cwd, env=environment, capture_output=True, check=False, timeout=600)


def test_letters_that_a_terminal_has_not_lose_no_report(tmp_path: Path) -> None:
    """All runs were made, and then the table's first ± ended the command before its files were written."""
    done = in_c_locale("compare", "popularity", "--seeds", "0,1", "--quiet", "--out", "c", cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    assert b"popularity" in done.stdout
    assert "±" in (tmp_path / "c" / "compare.md").read_text(encoding="utf-8")


@pytest.mark.parametrize(
    ("encoding", "errors", "told"),
    [("ascii", "strict", b"a?b"), ("ascii", "surrogateescape", b"a?b"), ("utf-8", "surrogateescape", b"a\xe4b")],
)
def test_a_name_that_is_no_text_is_shown_as_it_can_be(
    encoding: str, errors: str, told: bytes, monkeypatch: pytest.MonkeyPatch
) -> None:
    kept = io.BytesIO()
    monkeypatch.setattr(sys, "stdout", io.TextIOWrapper(kept, encoding, errors))
    monkeypatch.setattr(sys, "argv", ["fedrec", "--version"])
    with contextlib.suppress(SystemExit):
        main()
    print("a\udce4b", flush=True)
    assert kept.getvalue().splitlines()[-1] == told


@pytest.mark.parametrize("words", [("run", "popularity"), ("compare", "popularity", "--seeds", "0")])
def test_what_is_written_is_there_when_nobody_reads_what_is_printed(
    words: tuple[str, ...], tmp_path: Path, monkeypatch: pytest.MonkeyPatch, fedrec: Cli
) -> None:
    def closed(*_: object) -> None:
        raise OSError("nobody reads this")

    monkeypatch.setattr("fedrec.cli.run.print_result", closed)
    monkeypatch.setattr("fedrec.cli.compare.print_comparison", closed)
    done = fedrec(*words, "--quiet", "--out", "out", "--json", "said.json")
    assert (done.status, "nobody reads this" in done.err) == (1, True)
    assert json.loads((tmp_path / "said.json").read_text(encoding="utf-8"))
    assert (tmp_path / "out" / ("result.json" if words[0] == "run" else "compare.md")).is_file()


@pytest.mark.skipif(sys.platform != "linux", reason="elsewhere every file name is text")
def test_a_folder_whose_name_is_no_text(fedrec: Cli, tmp_path: Path) -> None:
    """After all rounds the run was lost: pyarrow takes no such name."""
    name = os.fsdecode(b"l\xe4ufe")
    assert fedrec("run", "fedavg", "--rounds", "1", "--quiet", "--out", name).status == 0
    assert fedrec("compare", name, "--quiet", "--out", name + "-2").status == 0
    assert (tmp_path / f"{name}-2" / "compare.md").is_file()
    for end in ("parquet", "csv"):
        assert fedrec("recommend", name, "--all", "--quiet", "--out", f"{name}.{end}").status == 0
        assert fedrec("recommend", name, "--all", "--quiet", "--out", f"plain.{end}").status == 0
        assert (tmp_path / f"{name}.{end}").read_bytes() == (tmp_path / f"plain.{end}").read_bytes()
    done = fedrec("tune", "fedavg", "--trials", "1", "--rounds", "1", "--quiet", "--out", f"{name}-3")
    assert done.status == 0, done.err
