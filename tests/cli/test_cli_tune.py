"""`fedrec tune`, and the recipe that it leaves."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import pytest

import fedrec as library
from command_line import Cli
from fedrec.cli.tune import parse_budget
from fedrec.errors import BadInput
from fedrec.runs.recipes import read_recipes


def test_a_tuned_recipe_goes_into_runs(fedrec: Cli, tmp_path: Path) -> None:
    out = tmp_path / "tune"
    done = fedrec("tune", "ease", "popularity", "--data", "demo", "--trials", "3", "--out", str(out))
    assert done.status == 0, done.err
    assert "ease" in done.out
    assert (out / "demo" / "ease" / "search.png").is_file()
    assert not (out / "demo" / "popularity" / "trials" / "0001").exists()  # there is nothing to search
    again = fedrec("tune", "ease", "popularity", "--data", "demo", "--trials", "3", "--so-far", "--out", str(out))
    assert again.status == 0, again.err
    recipe, result = str(out / "recipe.yaml"), tmp_path / "r.json"
    run = fedrec("run", "ease", "--recipe", recipe, "--out", str(tmp_path / "run"), "--json", str(result), "--quiet")
    assert run.status == 0, run.err
    found = json.loads(result.read_text())
    values = [
        json.loads(p.read_text())["metrics"]["valid"]["NDCG@10"] for p in out.glob("demo/ease/trials/*/result.json")
    ]
    assert found["metrics"]["valid"]["NDCG@10"] == max(values)
    assert found["metrics"]["test"]


def test_a_second_call_keeps_what_the_first_has_found(fedrec: Cli, tmp_path: Path) -> None:
    for methods in (["ease"], ["popularity", "gfcf"]):
        done = fedrec("tune", *methods, "--data", "demo", "--trials", "1", "--out", "tune")
        assert done.status == 0, done.err
    found = read_recipes(tmp_path / "tune" / "recipe.yaml")
    assert sorted(entry["methods"][0] for entry in found) == ["ease", "gfcf", "popularity"]


def test_a_machine_without_matplotlib_writes_all_but_the_pictures(
    fedrec: Cli, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    done = fedrec("tune", "ease", "--data", "demo", "--trials", "2", "--out", "tune")
    assert done.status == 0, done.err
    assert "pictures of the searches left out: matplotlib is not installed" in done.err
    assert (tmp_path / "tune" / "recipe.yaml").is_file()
    assert not list((tmp_path / "tune").rglob("*.png"))


def test_a_run_without_test_values_says_so(fedrec: Cli, tmp_path: Path) -> None:
    result = tmp_path / "r.json"
    done = fedrec("run", "popularity", "--no-test", "--out", str(tmp_path / "run"), "--json", str(result), "--quiet")
    assert done.status == 0, done.err
    assert json.loads(result.read_text())["metrics"]["test"] == {}
    assert not list((tmp_path / "run").glob("users.*"))


def test_a_method_shows_what_is_searched(fedrec: Cli) -> None:
    shown = fedrec("methods", "fedrap").out
    assert "searched by `fedrec tune`" in shown
    assert "private_rate: 0.001 .. 1 (log)  " in shown
    assert "with epochs=3" in shown


@pytest.mark.parametrize(("word", "option"), [("3trials", "--trials"), ("1h", "--hours")])
def test_a_budget_and_the_option_for_the_same_are_refused(fedrec: Cli, tmp_path: Path, word: str, option: str) -> None:
    """The option was ignored."""
    done = fedrec("tune", "ease", "--data", "demo", "--budget", word, option, "5", "--out", "tune")
    assert done.status == 2
    assert f"--budget {word} and {option} say the same; give one of them" in done.err
    assert not (tmp_path / "tune").exists()


def test_budgets_in_one_word() -> None:
    assert parse_budget("15trials") == {"trials": 15}
    assert parse_budget("0.5h") == {"hours": 0.5}
    assert parse_budget("3e4 steps") == {"total_steps": 30000.0}
    for odd in ("15", "trials", "1.5trials", "-3h", "1.2.3h"):
        with pytest.raises(BadInput, match="is not a budget"):
            parse_budget(odd)


def test_a_search_without_trials_is_bad_input_in_python_too(tmp_path: Path) -> None:
    with pytest.raises(BadInput, match=r"^trials 0 is out of range"):
        library.tune("ease", trials=0, out=tmp_path)
    assert not any(tmp_path.iterdir())


@pytest.mark.parametrize(
    ("words", "line"),
    [
        (["tune"], "which methods?"),
        (["tune", "ease", "--trials", "0"], "--trials 0 is out of range"),
        (["tune", "ease", "--launcher", "ssh"], "give process or submitit"),
        (["tune", "ease", "--data", "nowhere"], "unknown data"),
        (["tune", "ease", "--set", "lamb=3"], "did you mean"),
        (["run", "ease", "--recipe", "nowhere.yaml"], "--recipe nowhere.yaml cannot be read"),
        (["run", "fedavg", "--protocol", "paper-fedca", "--no-test"], "chooses the round on the test part"),
    ],
)
def test_bad_input_is_one_line(fedrec: Cli, words: list[str], line: str, tmp_path: Path) -> None:
    done = fedrec(*words)
    assert done.status == 2
    assert line in done.err
    assert not any(tmp_path.rglob("*.yaml"))
