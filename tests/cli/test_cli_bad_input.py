"""Bad input: one clear line, exit status 2, nothing half-written."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from command_line import Cli, Done

GOOD = "user,item,timestamp\n" + "".join(f"u{u},i{i},{i}\n" for u in range(8) for i in range(u, u + 6))


def assert_refused(done: Done, *words: str) -> None:
    assert done.status == 2, done.err
    lines = [line for line in done.err.splitlines() if line.strip()]
    assert len(lines) == 1, done.err
    assert "Traceback" not in done.err
    for word in words:
        assert word in lines[0]


def assert_nothing_written(folder: Path, *kept: str) -> None:
    assert sorted(p.name for p in folder.iterdir()) == sorted(kept)


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (("run", "fedvag"), ("unknown method", "fedavg")),
        (("run", "popularity", "--data", "ml-100"), ("ml-100k",)),
        (("run", "popularity", "--protocol", "strickt"), ("unknown protocol", "strict")),
        (("run", "fedavg", "--set", "dimm=8"), ("no setting 'dimm'", "dim")),
        (("run", "fedavg", "--set", "dim=-3"), ("dim=-3", "greater than or equal to 1")),
        (("run", "fedavg", "--set", "dim=many"), ("dim='many'",)),
        (("run", "fedavg", "--set", "noise=inf"), ("noise=inf", "finite")),
        (("run", "fedavg", "--set", "optimizer=sdg"), ("optimizer", "adam")),
        (("run", "fedavg", "--set", "dim"), ("key=value",)),
        (("run", "fedavg", "--set", "dim=4", "--set", "dim=5"), ("twice",)),
        (("run", "fedavg", "--rounds", "0"), ("rounds=0",)),
        (("run", "fedavg", "--rounds", "-1"), ("rounds=-1",)),
        (("run", "popularity", "--rounds", "5"), ("one step",)),
        (("run", "popularity", "--json", "-"), ("--json", "a file's name")),
        (("run", "fedavg", "--participation", "0"), ("participation",)),
        (("run", "fedavg", "--spread", "blocks"), ("--spread", "add --clients")),
        (("run", "fedavg", "--clients", "5", "--spread", "stripes"), ("spread", "blocks")),
        (("run", "fedavg", "--participation", "0.9", "--rest"), ("0.5",)),
        (("run", "fedavg", "--dropout", "1"), ("dropout",)),
        (("run", "fedavg", "--delta", "1e-9"), ("--delta works only with --epsilon", "--set delta=1e-09")),
        (("run", "fedavg", "--robust", "none", "--robust-factor", "3"), ("--robust-factor is for",)),
        (("run", "fedavg", "--secure", "--clients", "2"), ("only 2 of 2 clients take part", "--secure-least")),
        (("run", "fedavg", "--secure", "--participation", "0.01"), ("only 1 of 120 clients", "--participation")),
        (("run", "fedavg", "--secure", "--secure-by", "nodes", "--nodes", "2"), ("only 2 of 2 nodes", "--nodes")),
        (("run", "fedavg", "--secure", "--clients", "5", "--secure-least", "6"), ("a secure sum needs 6",)),
        (("run", "fedavg", "--secure", "--secure-cohort", "50", "--secure-least", "70"), ("--secure-cohort",)),
        (("run", "fedavg", "--seed", "-1"), ("seed",)),
        (("run", "fedavg", "--device", "cuda9"), ("device",)),
        (("run", "fedavg", "--runtime", "spark"), ("runtime",)),
        (("run",), ("which method",)),
        (("run", "fedavg", "--json", "no/such/folder/x.json"), ("--json",)),
        (("run", "popularity", "--data", "missing.csv"), ("missing.csv",)),
        (("run", "--resume", "nowhere"), ("nowhere",)),
        (("run", "popularity", "--min-interactions", "100000"), ("100000",)),
        (("run", "popularity", "--runtime", "flower"), ("centralised",)),
        (("methods", "fedvag"), ("fedavg",)),
        (("data", "describe", "ml-10m"), ("ml-1",)),
        (("data", "get", "ml-100"), ("ml-100k",)),
        (("recommend", "nowhere", "--user", "1"), ("nowhere",)),
        (("compare", "fedvag"), ("fedavg",)),
    ],
    ids=lambda value: " ".join(value) if isinstance(value, tuple) else None,
)
def test_a_wrong_word_is_one_line(
    fedrec: Cli, tmp_path: Path, arguments: tuple[str, ...], words: tuple[str, ...]
) -> None:
    assert_refused(fedrec(*arguments), *words)
    assert_nothing_written(tmp_path)


@pytest.mark.parametrize(
    ("arguments", "line"),
    [
        (
            "run fedavg --rounds abc",
            "invalid value for '--rounds': 'abc' is not a valid integer (see fedrec run --help)",
        ),
        ("recommend r -k abc", "invalid value for '-k': 'abc' is not a valid integer (see fedrec recommend --help)"),
        ("run fedavg --round 3", "no such option --round; did you mean --rounds? (see fedrec run --help)"),
        ("run fedavg --zzz", "no such option --zzz (see fedrec run --help)"),
        ("run fedavg fcf", "got unexpected extra argument (fcf) (see fedrec run --help)"),
        ("run fedavg --rounds", "option '--rounds' requires an argument (see fedrec run --help)"),
        ("recommend", "missing argument 'RUN' (see fedrec recommend --help)"),
        ("recomend", "no such command 'recomend'; did you mean recommend? (see fedrec --help)"),
        ("analyse foo", "no such command 'foo' (see fedrec analyse --help)"),
        ("deploy try --nodes 0", "invalid value for '--nodes': 0 is not in the range 1<=x<=100 (see fedrec deploy try"),
        ("--foo", "no such option --foo (see fedrec --help)"),
    ],
)
def test_a_wrong_command_line_is_one_line(fedrec: Cli, tmp_path: Path, arguments: str, line: str) -> None:
    done = fedrec(*arguments.split())
    assert_refused(done)
    assert done.err.startswith(f"fedrec: {line}")
    assert done.out == ""
    assert_nothing_written(tmp_path)


@pytest.mark.parametrize("words", [(), ("analyse",)])
def test_no_word_at_all_shows_the_help(fedrec: Cli, words: tuple[str, ...]) -> None:
    done = fedrec(*words)
    assert (done.status, done.err) == (2, "")
    assert done.out.count("Usage: ") == 1


@pytest.mark.parametrize(
    ("text", "words"),
    [
        (GOOD.replace("u3,i4,4\n", "u3,i4\n"), ("data.csv", "line 21")),
        (GOOD.replace("u3,i4,4\n", "u3,i4,yesterday evening\n"), ("data.csv", "line 21")),
        (GOOD + "u9,i1,1\nu9,i2,2\n", ("1 of 9 users", "fewer than 3", "--min-interactions 3")),
        (GOOD + "12,i1,1\n", ("data.csv", "user")),
        ("user,item,timestamp\n", ("data.csv",)),
        ("", ("data.csv",)),
        (GOOD.replace("item", "thing", 1), ("item", "thing")),
    ],
    ids=["short row", "bad time", "too few to split", "mixed ids", "no rows", "empty", "no item column"],
)
def test_a_wrong_file_is_one_line(fedrec: Cli, tmp_path: Path, text: str, words: tuple[str, ...]) -> None:
    (tmp_path / "data.csv").write_text(text)
    assert_refused(fedrec("run", "popularity", "--data", "data.csv"), *words)
    assert_nothing_written(tmp_path, "data.csv")


def test_an_unreadable_file_is_one_line(fedrec: Cli, tmp_path: Path) -> None:
    (tmp_path / "data.csv").mkdir()
    assert_refused(fedrec("run", "popularity", "--data", "data.csv"), "data.csv")


def test_a_used_folder_is_kept_as_it_is(fedrec: Cli, tmp_path: Path) -> None:
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine" / "thesis.txt").write_text("years of work")
    assert_refused(fedrec("run", "popularity", "--out", "mine"), "already used", "--resume")
    assert (tmp_path / "mine" / "thesis.txt").read_text() == "years of work"
    assert_nothing_written(tmp_path / "mine", "thesis.txt")


@pytest.mark.skipif(os.geteuid() == 0, reason="root may write everywhere")
def test_an_unwritable_folder_is_one_line(fedrec: Cli, tmp_path: Path) -> None:
    (tmp_path / "closed").mkdir(mode=0o500)
    assert_refused(fedrec("run", "popularity", "--out", "closed/run"), "cannot write")


def test_a_file_in_the_way_of_the_folder_is_one_line(fedrec: Cli, tmp_path: Path) -> None:
    (tmp_path / "file").write_text("x")
    assert_refused(fedrec("run", "popularity", "--out", "file/run"), "cannot write")
    assert (tmp_path / "file").read_text() == "x"


@pytest.mark.parametrize("place", ["file", "file/below", "/proc/nothing"])
@pytest.mark.parametrize(
    "words",
    [
        ("audit", "fedavg", "--attack", "touched", "--rounds", "1"),
        ("tune", "fedavg", "--trials", "1", "--steps", "10"),
        ("analyse", "skew", "--most", "10", "--rounds", "1"),
        ("analyse", "leak", "--rounds", "1"),
        ("deploy", "try"),
    ],
    ids=" ".join,
)
def test_a_folder_that_cannot_be_is_said_before_the_work(
    fedrec: Cli, tmp_path: Path, words: tuple[str, ...], place: str
) -> None:
    (tmp_path / "file").write_text("x")
    assert_refused(fedrec(*words, "--out", place), "--out", place.removesuffix("/below"))
    assert_nothing_written(tmp_path, "file")


@pytest.mark.skipif(not Path("/proc/self").is_dir(), reason="a folder that nobody can write into")
def test_a_file_that_cannot_be_is_said_before_the_work(fedrec: Cli, tmp_path: Path) -> None:
    """The run was made, and then it failed with exit status 1."""
    assert_refused(fedrec("run", "popularity", "--json", "/proc/x.json"), "cannot write /proc/x.json", "--json")
    assert_refused(fedrec("run", "popularity", "--json", "new/../x.json"), "cannot write new/../x.json", "--json")
    assert_refused(fedrec("audit", "fedavg", "--rounds", "1", "--store", "no/such.yaml"), "no/such.yaml", "--store")
    assert_nothing_written(tmp_path)
    assert fedrec("run", "popularity", "--out", "r", "--quiet").status == 0
    done = fedrec("recommend", "r", "--all", "--out", "/proc/x.csv")
    assert_refused(done, "cannot write /proc/x.csv", "a file in a folder that exists")


def test_an_unknown_user_or_count_is_one_line(fedrec: Cli, tmp_path: Path) -> None:
    assert fedrec("run", "popularity", "--out", "r", "--quiet").status == 0
    assert_refused(fedrec("recommend", "r", "--user", "nobody"), "'nobody' is not among the")
    near = fedrec("recommend", "r", "--user", "u0010")
    assert_refused(near, "'u0010' is not among the")
    assert "u001" not in near.err.replace("u0010", "")  # a hint would tell who else is there
    user = fedrec("recommend", "r", "--user", "u001", "-k", "0")
    assert_refused(user, "at least 1")
