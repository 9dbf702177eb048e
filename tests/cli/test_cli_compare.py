"""``fedrec compare`` as a user calls it, on the demo world."""

from __future__ import annotations

import csv
import json
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import yaml
from click.testing import Result
from typer.testing import CliRunner

from command_line import Cli
from fedrec.cli.compare import data_names
from fedrec.cli.main import app
from fedrec.errors import BadInput
from fedrec.experiment import compare as comparing
from fedrec.experiment import run as running
from fedrec.experiment.entrants import named
from fedrec.experiment.resolve import resolve

FAST = ["--rounds", "2", "--set", "epochs=1", "--set", "dim=4", "--quiet"]


def call(*words: object) -> Result:
    return CliRunner().invoke(app, ["compare", *map(str, words)])


def bad(*words: object) -> str:
    problem = call(*words).exception
    assert isinstance(problem, BadInput), problem
    assert "\n" not in str(problem)
    return str(problem)


@pytest.fixture(scope="module")
def first(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Result]:
    """One comparison of a federated and two centralised methods."""
    out = tmp_path_factory.mktemp("compare") / "out"
    words = ["fedavg", "ease", "mf", "--seeds", "0,1", *FAST, "--set", "ease.lam=50"]
    return out, call(*words, "--out", out, "--json", out.parent / "c.json")


def test_table_has_groups_controls_and_notes(first: tuple[Path, Result]) -> None:
    _, result = first
    assert result.exit_code == 0, result.output
    for word in ("fedavg", "ease", "random", "popularity", "local", "federated", "centralised", "controls"):
        assert word in result.stdout
    assert "paired permutation test over users" in result.stdout
    assert "Chance (exact)" in result.stdout
    assert "LEAK" not in result.stdout  # strict


def test_files_are_written(first: tuple[Path, Result]) -> None:
    out, _ = first
    for name in ("compare.png", "curves.png"):
        assert (out / name).read_bytes().startswith(b"\x89PNG")
        assert (out / name).with_suffix(".pdf").read_bytes().startswith(b"%PDF")
        assert "<svg" in (out / name).with_suffix(".svg").read_text(encoding="utf-8")
    assert r"\textbf{" in (out / "compare.tex").read_text(encoding="utf-8")
    with open(out / "compare.csv", encoding="utf-8") as file:
        assert {row["method"] for row in csv.DictReader(file)} >= {"fedavg", "ease", "local"}
    page = (out / "compare.md").read_text(encoding="utf-8")
    assert "fedrec compare fedavg ease mf --seeds 0,1" in page
    assert "--set ease.lam=50" in page
    assert not list(out.glob(".*.tmp"))


def test_json_rows(first: tuple[Path, Result]) -> None:
    content = json.loads((first[0].parent / "c.json").read_text(encoding="utf-8"))
    assert content["schema"] == "fedrec.compare/1"
    rows = {row["method"]: row for row in content["rows"]}
    assert {name for name, row in rows.items() if row["control"]} == {"random", "popularity", "local"}
    for row in rows.values():
        assert row["seeds"] == [0, 1]
        own = row["values"]["NDCG@10"]
        assert row["mean"]["NDCG@10"] == pytest.approx(sum(own) / 2)
        assert row["spread"]["NDCG@10"] == pytest.approx(abs(own[0] - own[1]) / 2**0.5)
    assert rows["ease"]["settings"]["settings"] == {"lam": 50.0}  # METHOD.key
    assert rows["fedavg"]["settings"]["settings"]["dim"] == 4  # key, for all that have it
    assert rows["mf"]["settings"]["settings"]["dim"] == 4
    assert rows["fedavg"]["rounds"] == [2, 2]
    assert rows["ease"]["rounds"] == [1, 1]  # --rounds does not concern a fit in one step
    assert rows["fedavg"]["bytes"]["upload"] > 0


def test_runs_equal_single_runs(first: tuple[Path, Result]) -> None:
    content = json.loads((first[0].parent / "c.json").read_text(encoding="utf-8"))
    row = next(row for row in content["rows"] if row["method"] == "fedavg")
    alone = running.execute(resolve("fedavg", {"rounds": 2, "seed": 1, "settings": {"epochs": 1, "dim": 4}}))
    assert row["values"]["HR@10"][1] == pytest.approx(alone.metrics["HR@10"])


def test_second_call_reads_and_an_unfinished_run_is_resumed(
    first: tuple[Path, Result], monkeypatch: pytest.MonkeyPatch
) -> None:
    out, _ = first
    for name in ("manifest.json", "result.json"):  # as if the run had been killed
        (out / "fedavg-seed1" / name).unlink()
    carried = []
    original = running.carry_out

    def counted(prepared: Any, *rest: Any) -> Any:
        carried.append((prepared.settings.method, prepared.settings.seed))
        return original(prepared, *rest)

    monkeypatch.setattr(running, "carry_out", counted)
    before = (out / "compare.csv").read_text(encoding="utf-8")
    result = call("fedavg", "ease", "mf", "--seeds", "0,1", *FAST, "--set", "ease.lam=50", "--out", out)
    assert result.exit_code == 0, result.output
    assert carried == [("fedavg", 1)]

    def metrics(text: str) -> list[dict[str, str]]:
        return [
            {key: value for key, value in row.items() if key not in ("seconds",)}
            for row in csv.DictReader(text.splitlines())
        ]

    assert metrics((out / "compare.csv").read_text(encoding="utf-8")) == metrics(before)


def test_so_far_shows_what_is_finished_and_starts_nothing(first: tuple[Path, Result], tmp_path: Path) -> None:
    out, _ = first
    here = tmp_path / "part"
    shutil.copytree(out, here)
    for name in ("manifest.json", "result.json"):
        (here / "mf-seed1" / name).unlink()
    shutil.rmtree(here / "ease-seed0")
    shutil.rmtree(here / "ease-seed1")
    words = ["fedavg", "ease", "mf", "--seeds", "0,1", *FAST, "--set", "ease.lam=50", "--so-far"]
    shown = call(*words, "--out", here)
    assert shown.exit_code == 0, shown.output
    assert "seeds 0, 1: not run yet" in shown.stdout
    assert not (here / "ease-seed0").exists()
    assert not (here / "mf-seed1" / "result.json").exists()
    page = (here / "compare.html").read_text(encoding="utf-8")
    assert "Not run yet:" in page
    assert "mf (seed 1), ease (seed 0, 1)" in page
    assert "without --so-far" in bad(*words, "--out", tmp_path / "none")


def test_other_settings_in_the_folder_are_bad_input(first: tuple[Path, Result]) -> None:
    out, _ = first
    text = bad("fedavg", "--seeds", "0", "--rounds", "3", "--set", "epochs=1", "--set", "dim=4", "--out", out)
    assert "rounds is 2 there, 3 now" in text


def test_how_a_run_is_carried_out_is_not_what_it_is(first: tuple[Path, Result]) -> None:
    out, _ = first
    words = ["ease", "--seeds", "0", *FAST, "--set", "ease.lam=50", "--memory-mb", "64", "--out", out]
    assert call(*words).exit_code == 0


def test_a_folder_of_something_else_is_bad_input(tmp_path: Path) -> None:
    (tmp_path / "ease-seed0").mkdir()
    (tmp_path / "ease-seed0" / "notes.txt").write_text("mine")
    assert "something other" in bad("ease", "--seeds", "0", "--out", tmp_path)
    (tmp_path / "file").write_text("")
    assert "is a file" in bad("ease", "--out", tmp_path / "file")


def test_a_failing_run_does_not_lose_the_others(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from fedrec.methods.references.ease import Ease

    def broken(*_: Any) -> Any:
        raise ZeroDivisionError("no inverse")

    monkeypatch.setattr(Ease, "step", broken)
    out, file = tmp_path / "out", tmp_path / "c.json"
    result = call("ease", "gfcf", "--seeds", "0", *FAST, "--out", out, "--json", file)
    assert result.exit_code == 1
    assert "ZeroDivisionError: no inverse" in " ".join(result.stdout.split())
    rows = {row["method"]: row for row in json.loads(file.read_text(encoding="utf-8"))["rows"]}
    assert rows["ease"]["failures"] == [{"seed": 0, "reason": "ZeroDivisionError: no inverse"}]
    assert rows["gfcf"]["mean"]["HR@10"] > 0
    assert (out / "compare.md").is_file()


def test_leaky_protocol_raises_the_banner(tmp_path: Path) -> None:
    words = [
        "popularity",
        "--protocol",
        "paper-fedca",
        "--seeds",
        "0",
        "--rounds",
        "5",
        "--quiet",
        "--out",
        tmp_path,
    ]
    result = call(*words)
    assert result.exit_code == 0, result.output
    assert "LEAK: under paper-fedca" in result.stdout
    assert "drawn from the items outside ALL" in result.stdout
    assert "LEAK" in (tmp_path / "compare.md").read_text(encoding="utf-8")


@pytest.mark.parametrize(
    ("words", "says"),
    [
        ([], "which methods"),
        (["easy"], "did you mean 'ease'"),
        (["ease", "--seeds", "0,x"], "is not a list of seeds"),
        (["ease", "--set", "lamm=1"], "did you mean 'lam'"),
        (["ease", "--set", "ease.dim=4"], "ease has no setting 'dim'"),
        (["ease", "--set", "mf.dim=4"], "'mf' is not compared here"),
        (["ease", "--set", "lam=-1"], "out of range"),
        (["ease", "--total-memory-mb", "-5"], "--total-memory-mb -5 is out of range; give 1 or more"),
        (["ease", "--data", "no-such"], "unknown data"),
        (["ease", "--protocol", "strickt"], "did you mean 'strict'"),
        (["ease", "--json", "no-such-folder/c.json"], "--json"),
    ],
)
def test_bad_input_says_what_is_right(words: list[str], says: str, tmp_path: Path) -> None:
    out = tmp_path / "out"
    assert says in bad(*words, "--out", out)
    assert not out.exists()  # nothing is left behind


def test_default_folder_is_named_after_data_and_protocol() -> None:
    assert comparing.default_folder("fedcia/ml100k_100", "strict") == Path("runs/compare-ml100k_100-strict")
    assert comparing.default_folder("scale:users=10", "strict") == Path("runs/compare-scale-users-10-strict")


def test_stored_settings_are_those_of_the_command(first: tuple[Path, Result]) -> None:
    there = yaml.safe_load((first[0] / "local-seed1" / "settings.yaml").read_text(encoding="utf-8"))
    assert (there["method"], there["seed"], there["rounds"]) == ("local", 1, 2)


def test_start_up_imports_nothing_heavy() -> None:
    code = (
        "import sys, fedrec.cli.compare; "
        "print([m for m in ('torch', 'numba', 'pandas', 'scipy', 'matplotlib', 'numpy') if m in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


def test_runs_of_different_data_are_not_one_comparison(fedrec: Cli) -> None:
    """They were: of two folders with the same name the first was dropped without a word."""
    for data in ("demo", "planted"):
        assert fedrec("run", "popularity", "--data", data, "--out", f"{data}/one", "--quiet").status == 0
    text = bad("demo/one", "planted/one", "--out", "o")
    assert "demo/one has the data demo, planted/one has planted; compare runs of the same data" in text
    assert not Path("o").exists()


def test_two_runs_whose_folders_have_the_same_name_are_two_rows(fedrec: Cli) -> None:
    for lam in (10, 500):
        assert fedrec("run", "ease", "--set", f"lam={lam}", "--out", f"lam{lam}/one", "--quiet").status == 0
    result = call("lam10/one", "lam500/one", "--out", "o", "--json", "c.json")
    assert result.exit_code == 0
    rows = [row["method"] for row in json.loads(Path("c.json").read_text(encoding="utf-8"))["rows"]]
    assert sorted(row for row in rows if row.startswith("ease")) == ["ease:lam500/one", "ease:one"]


def test_several_data_sets_make_a_leaderboard(tmp_path: Path) -> None:
    out, file = tmp_path / "board", tmp_path / "board.json"
    (tmp_path / "own.csv").write_text(
        "user,item\n" + "".join(f"u{u},i{(u * 7 + k * 3) % 40}\n" for u in range(30) for k in range(8))
    )
    data = f"demo,{tmp_path / 'own.csv'}"
    words = ["fedavg", "ease", "--data", data, "--seeds", "0,1", *FAST, "--no-models", "--out", out]
    result = call(*words, "--json", file)
    assert result.exit_code == 0, result.output
    board = json.loads(file.read_text(encoding="utf-8"))
    assert [one["data"]["name"] for one in board["comparisons"]] == ["demo", "own"]
    rows = list(csv.DictReader((out / "leaderboard.csv").read_text(encoding="utf-8").splitlines()))
    found = {(row["metric"], row["method"], row["data"]): float(row["mean"]) for row in rows}
    for one in board["comparisons"]:
        for row in one["rows"]:
            assert found["HR@10/99", row["method"], one["data"]["name"]] == pytest.approx(row["mean"]["HR@10/99"])
    assert not list(out.rglob("model.safetensors"))
    page = (out / "leaderboard.md").read_text(encoding="utf-8")
    assert "| fedavg |" in page
    assert "--no-models" in page  # the command as it was given
    assert page.count("not significantly better than popularity") <= 1 == page.count("Tested by a")
    assert "<table" in (out / "leaderboard.html").read_text(encoding="utf-8")
    assert (out / "ranks.png").read_bytes().startswith(b"\x89PNG")
    assert "ranks.png" in page
    assert "Friedman" in page
    assert (out / "demo" / "compare.html").is_file()


@pytest.mark.parametrize(
    ("word", "inside", "outside"), [("federated", "fedca", "ease"), ("centralised", "ease", "fedca")]
)
def test_a_group_stands_for_its_methods(word: str, inside: str, outside: str) -> None:
    names = named([word, "fedavg"])
    assert inside in names
    assert outside not in names
    assert set(named(["all"])) == set(named(["federated", "centralised"]))


@pytest.mark.parametrize(
    ("text", "names"),
    [
        ("demo", ["demo"]),
        ("ml-100k, demo,", ["ml-100k", "demo"]),
        ("scale:users=9,items=8,demo", ["scale:users=9,items=8", "demo"]),
    ],
)
def test_commas_separate_data_sets_and_not_the_settings_of_a_world(text: str, names: list[str]) -> None:
    assert data_names(text) == names
