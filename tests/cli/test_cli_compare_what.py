"""What can be compared: variants, finished runs, methods of a file; and what is wrong with one of many."""

from __future__ import annotations

import json
import os
import re
import shutil
from pathlib import Path
from typing import Any

import pytest

import fedrec as library
from command_line import Cli
from fedrec.methods import registry

FAST = ("--rounds", "2", "--set", "epochs=1", "--set", "dim=4", "--quiet", "--seeds", "0")


def rows(path: Path) -> dict[str, dict[str, object]]:
    return {row["method"]: row for row in json.loads(path.read_text())["rows"]}


def test_variants_of_a_method_stand_side_by_side(fedrec: Cli, tmp_path: Path) -> None:
    done = fedrec("compare", "fcf:lr=0.1", "fcf:lr=1e-3,negatives=2", "fcf", *FAST, "--json", "c.json", "--out", "out")
    assert done.status == 0, done.err
    found = rows(tmp_path / "c.json")
    assert set(found) == {"fcf", "fcf:lr=0.1", "fcf:lr=1e-3,negatives=2", "random", "popularity", "local"}
    settings = {name: row["settings"]["settings"] for name, row in found.items()}  # type: ignore[index]
    assert settings["fcf:lr=0.1"]["lr"] == 0.1
    assert settings["fcf:lr=1e-3,negatives=2"]["lr"] == 0.001
    assert settings["fcf:lr=1e-3,negatives=2"]["negatives"] == 2
    assert {row["group"] for name, row in found.items() if name.startswith("fcf")} == {"federated"}
    assert "fcf:lr=0.1" in (tmp_path / "out" / "compare.html").read_text()
    assert all((tmp_path / "out" / name / "result.json").is_file() for name in ("fcf-seed0", "fcf-lr=0.1-seed0"))
    assert "no setting 'lrr'" in fedrec("compare", "fcf:lrr=1", *FAST).err


def test_finished_runs_are_compared_as_they_are(fedrec: Cli, tmp_path: Path) -> None:
    for name, lr in (("slow", 0.001), ("fast", 0.1)):
        given = {"epochs": 1, "dim": 4, "lr": lr}
        library.run("fcf", data="planted", rounds=2, seed=4, settings=given, out=tmp_path / name)
    before = (tmp_path / "slow" / "result.json").read_bytes()
    done = fedrec("compare", "slow", "fast", "--rounds", "1", "--json", "c.json", "--quiet")
    assert done.status == 0, done.err
    found = rows(tmp_path / "c.json")
    assert set(found) == {"fcf:slow", "fcf:fast", "random", "popularity", "local"}
    assert {tuple(row["seeds"]) for row in found.values()} == {(4,)}  # type: ignore[arg-type]
    assert json.loads((tmp_path / "c.json").read_text())["data"]["name"] == "planted"
    assert (tmp_path / "slow" / "result.json").read_bytes() == before
    found = rows(tmp_path / "c.json")
    done = fedrec("compare", "fast", "ease", "--rounds", "1", "--seeds", "4", "--json", "d.json", "--quiet")
    assert done.status == 0, done.err
    assert set(rows(tmp_path / "d.json")) == {"fcf", "ease", "random", "popularity", "local"}


@pytest.mark.parametrize("given", [{"clients": 10, "spread": "blocks"}, {"copies": 2}])
def test_controls_have_the_people_of_the_finished_run(fedrec: Cli, tmp_path: Path, given: dict[str, Any]) -> None:
    """They had users dealt at random, and each once: the run was said to be of other data."""
    library.run("fcf", data="planted", rounds=1, settings={"epochs": 1, "dim": 4}, out=tmp_path / "run", **given)
    done = fedrec("compare", "run", "--rounds", "1", "--json", "c.json", "--quiet")
    assert done.status == 0, done.err
    assert set(rows(tmp_path / "c.json")) == {"fcf", "random", "popularity", "local"}


def test_a_second_comparison_with_other_rounds_stands_next_to_the_first(fedrec: Cli, tmp_path: Path) -> None:
    for rounds, folder in (("2", "compare-demo-strict"), ("3", "compare-demo-strict-2"), ("2", "compare-demo-strict")):
        words = ("compare", "fcf", "--rounds", rounds, *FAST[2:])
        done = fedrec(*words)
        assert done.status == 0, done.err
        assert f"runs/{folder}/compare.md" in done.out
    logs = [len((tmp_path / "runs" / f / "fcf-seed0" / "rounds.jsonl").read_text().splitlines()) for f in
            ("compare-demo-strict", "compare-demo-strict-2")]  # fmt: skip
    assert logs == [2, 3]


@pytest.mark.parametrize("name", ["settings.yaml", "result.json", "rounds.jsonl", "manifest.json"])
def test_a_damaged_run_is_named_and_the_rest_goes_on(fedrec: Cli, tmp_path: Path, name: str) -> None:
    words = ("compare", "fcf", "ease", *FAST, "--out", "out", "--json", "c.json")
    if not (tmp_path / "out").exists():
        assert fedrec(*words).status == 0
    path = tmp_path / "out" / "fcf-seed0" / name
    path.write_bytes(path.read_bytes()[:-30] + b"\0" * 30)
    done = fedrec(*words)
    assert done.status == 1
    found = rows(tmp_path / "c.json")
    assert found["ease"]["mean"]
    failures: Any = found["fcf"]["failures"]
    assert len(failures) == 1
    assert "fcf-seed0" in failures[0]["reason"]
    assert "damaged or was changed" in failures[0]["reason"]


def test_runs_made_from_other_data_are_not_mixed_in(fedrec: Cli, tmp_path: Path) -> None:
    lines = [f"u{u},i{(u * 7 + k * 3) % 40}\n" for u in range(30) for k in range(8)]
    (tmp_path / "own.csv").write_text("user,item\n" + "".join(lines))
    words = ("compare", "ease", "--data", "own.csv", *FAST[4:], "--rounds", "1", "--out", "out")
    assert fedrec(*words).status == 0
    (tmp_path / "own.csv").write_text("user,item\n" + "".join(lines[:-1]) + "u29,i0\n")
    done = fedrec(*words)
    assert done.status == 2
    assert "was made from other data: as many users, items and interactions" in done.err


@pytest.fixture
def own_method(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The example of CONTRIBUTING.md, as a file."""
    text = (Path(__file__).parents[2] / "CONTRIBUTING.md").read_text(encoding="utf-8")
    code = next(block for block in re.findall(r"```python\n(.*?)```", text, re.S) if "class Biased" in block)
    path = tmp_path / "my_method.py"
    path.write_text(code)
    monkeypatch.setenv(registry.FILES, "")
    return path


def test_a_method_of_a_file_is_run_compared_and_opened(fedrec: Cli, tmp_path: Path, own_method: Path) -> None:
    try:
        done = fedrec("run", "my_method.py:Biased", "--rounds", "2", "--set", "dim=4", "--out", "run", "--quiet")
        assert done.status == 0, done.err
        assert json.loads((tmp_path / "run" / "result.json").read_text())["method"] == "biased"
        done = fedrec("compare", "my_method.py:Biased:dim=3", *FAST, "--out", "out", "--json", "c.json")
        assert done.status == 0, done.err
        assert "biased:dim=3" in rows(tmp_path / "c.json")
        assert fedrec("recommend", "run", "--user", "u001").status == 0
        registry.forget("biased")  # as in another process, which knows what the environment says
        assert fedrec("recommend", "run", "--user", "u001").status == 0
        registry.forget("biased")
        del os.environ[registry.FILES]
        done = fedrec("recommend", "run", "--user", "u001")
        assert done.status == 2
        assert "FEDREC_METHODS" in done.err
    finally:
        registry.forget("biased")


@pytest.mark.parametrize(
    ("word", "said"),
    [("my_method.py:Biazed", "did you mean 'Biased'"), ("gone.py:Mine", "gone.py is not a file")],
)
def test_a_file_without_the_method_is_one_line(fedrec: Cli, own_method: Path, word: str, said: str) -> None:
    done = fedrec("run", word)
    registry.forget("biased")
    assert done.status == 2
    assert said in done.err
    assert len(done.err.splitlines()) == 1


def test_a_run_folder_cannot_name_a_file_to_be_imported(fedrec: Cli, tmp_path: Path, own_method: Path) -> None:
    (tmp_path / "evil.py").write_text("open('ran', 'w')\n")
    library.run("popularity", out=tmp_path / "run")
    shutil.copytree(tmp_path / "run", tmp_path / "foreign")
    text = (tmp_path / "foreign" / "settings.yaml").read_text()
    (tmp_path / "foreign" / "settings.yaml").write_text(
        re.sub("# blake2b.*\n", "", text).replace("method: popularity", "method: evil.py:Mine")
    )
    (tmp_path / "foreign" / "manifest.json").unlink()
    assert fedrec("recommend", "foreign", "--user", "u001").status == 2
    assert not (tmp_path / "ran").exists()
