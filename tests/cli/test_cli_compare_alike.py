"""Finished runs that have too little in common, or that are given twice, are refused before anything is trained."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

import fedrec as library
from command_line import Cli

SMALL: dict[str, Any] = {"data": "planted", "rounds": 1, "settings": {"epochs": 1, "dim": 4}}


def refused(fedrec: Cli, *words: str) -> str:
    done = fedrec("compare", *words, "--quiet")
    assert done.status == 2, done.out
    assert len(done.err.splitlines()) == 1
    assert not Path("runs").exists()  # no control was run
    return done.err


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ({"train_share": 0.3}, "other was run with --train-share 0.3, first with --train-share 1.0"),
        ({"evaluate_users": 20}, "other was run with --evaluate-users 20, first with no --evaluate-users"),
        ({"copies": 2}, "other was run with --copies 2, first with --copies 1"),
        ({"min_interactions": 4}, "other was run with --min-interactions 4, first with no --min-interactions"),
    ],
)
def test_runs_of_other_data_or_other_test_users_are_refused(
    fedrec: Cli, tmp_path: Path, given: dict[str, Any], said: str
) -> None:
    """They stood in one table, with marks and controls of the first."""
    library.run("fcf", **SMALL, out=tmp_path / "first")
    library.run("fcf", **SMALL, out=tmp_path / "other", **given)
    assert said in refused(fedrec, "first", "other")


def test_controls_test_the_users_of_the_finished_run(fedrec: Cli, tmp_path: Path) -> None:
    library.run("fcf", **SMALL, out=tmp_path / "run", evaluate_users=20)
    assert fedrec("compare", "run", "--json", "c.json", "--quiet").status == 0
    rows = json.loads((tmp_path / "c.json").read_text())["rows"]
    assert {row["settings"]["evaluate_users"] for row in rows} == {20}


def test_an_option_that_is_not_the_finished_run_s_is_refused(fedrec: Cli, tmp_path: Path) -> None:
    library.run("fcf", **SMALL, out=tmp_path / "run", train_share=0.5)
    said = "run was run with --train-share 0.5, not with --train-share 1.0; leave one of them out"
    assert said in refused(fedrec, "run", "ease", "--train-share", "1")
    assert "run learnt from planted, and --data is demo" in refused(fedrec, "run", "ease", "--data", "demo")


def test_files_of_one_name_and_other_contents_are_refused(fedrec: Cli, tmp_path: Path) -> None:
    lines = [f"u{u},i{(u * 7 + k * 3) % 40}" for u in range(30) for k in range(8)]
    for name, last in (("a", "i1"), ("b", "i2")):
        (tmp_path / name).mkdir()
        (tmp_path / name / "own.csv").write_text("\n".join(["user,item", *lines[:-1], f"u29,{last}"]))
        library.run("popularity", tmp_path / name / "own.csv", out=tmp_path / f"run-{name}")
    said = "run-b learnt from other data than run-a (as many users, items and interactions"
    assert said in refused(fedrec, "run-a", "run-b")


def test_a_run_given_twice_is_found_at_once(fedrec: Cli, tmp_path: Path) -> None:
    """It was found when the controls had been trained."""
    for name in ("first", "again"):
        library.run("fcf", **SMALL, out=tmp_path / name)
    assert "first is given twice; give each run once" in refused(fedrec, "first", "./first/")
    assert "first and again are the same run made twice (seed 0)" in refused(fedrec, "first", "again")


def test_a_variant_says_each_setting_once_and_stands_once(fedrec: Cli, tmp_path: Path) -> None:
    assert "'fcf:lr=0.1,lr=0.2' gives lr twice; give it once" in refused(fedrec, "fcf:lr=0.1,lr=0.2")
    words = ("fcf:lr=0.1,dim=4", "fcf:dim=4,lr=0.10", "--rounds", "1", "--seeds", "0", "--set", "epochs=1")
    assert fedrec("compare", *words, "--json", "c.json", "--quiet").status == 0
    methods = [row["method"] for row in json.loads((tmp_path / "c.json").read_text())["rows"]]
    assert [name for name in methods if name.startswith("fcf")] == ["fcf:lr=0.1,dim=4"]
