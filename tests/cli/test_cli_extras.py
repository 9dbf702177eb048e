"""A base install does the work; what needs more says in one line which extra brings it, before any work is done."""

from __future__ import annotations

import json
import re
import subprocess
import sys
import tomllib
from pathlib import Path
from typing import Any

import pytest

import fedrec
from fedrec.errors import BadInput
from fedrec.extras import EXTRAS

ROOT = Path(__file__).parent.parent.parent
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]

TASKS = {
    "deploy try": ("flwr", ["deploy", "try"]),
    "deploy server": ("flwr", ["deploy", "server", "--keys", "keys"]),
    "the Flower runtime": ("flwr", ["run", "fedavg", "--runtime", "flower", "--rounds", "1"]),
    "tune": ("optuna", ["tune", "fedavg", "--trials", "1"]),
    "analyse": ("matplotlib", ["analyse", "skew"]),
    "analyse items": ("matplotlib", ["analyse", "items", "run"]),
    "analyse sweep": ("matplotlib", ["analyse", "sweep", "fedavg", "--vary", "lr=1"]),
    "serve": ("fastapi", ["serve", "run"]),
    "watch": ("uvicorn", ["watch", "."]),
    "--live": ("starlette", ["run", "popularity", "--live"]),
}
BASE = {
    "help": ["analyse", "skew", "--help"],
    "data": ["data", "describe", "own.csv"],
    "compare": ["compare", "fedavg", "--data", "own.csv", "--seeds", "0", "--rounds", "1", "--out", "out"],
    "recommend": ["recommend", "out/fedavg-seed0", "--user", "u3", "-k", "2"],
}
SCRIPT = """
import contextlib, io, json, os, sys

class Missing:
    def find_spec(self, name, path=None, target=None):
        if name.split(".")[0] in EXTRAS:
            raise ModuleNotFoundError(f"No module named {name!r}", name=name)

EXTRAS, commands = json.load(sys.stdin)
sys.modules.update({name: None for name in EXTRAS})
sys.meta_path.insert(0, Missing())
from fedrec.cli.main import main
found = {}
for name, words in commands.items():
    sys.argv, out, err, status = ["fedrec", *words], io.StringIO(), io.StringIO(), 0
    with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
        try:
            main()
        except SystemExit as stop:
            status = stop.code or 0
    found[name] = [status, out.getvalue(), err.getvalue(), sorted(os.listdir())]
print(json.dumps(found))
"""


@pytest.fixture(scope="module")
def done(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    """Status, output, errors and files left, of every command in a Python where no extra is installed."""
    folder = tmp_path_factory.mktemp("base")
    (folder / "own.csv").write_text(
        "user,item,rating\n" + "".join(f"u{u},i{(u * 7 + k * k) % 15},5\n" for u in range(12) for k in range(6))
    )
    commands = {name: words for name, (_, words) in TASKS.items()} | BASE
    ended = subprocess.run(
        [sys.executable, "-c", SCRIPT], cwd=folder, input=json.dumps([list(EXTRAS), commands]), text=True,
        capture_output=True, check=True, timeout=600,
    )  # fmt: skip
    return dict(json.loads(ended.stdout), folder=folder)


@pytest.mark.parametrize("task", TASKS)
def test_one_line_names_the_extra_and_nothing_is_begun(task: str, done: dict[str, Any]) -> None:
    status, _, said, left = done[task]
    line = said.strip()
    assert (status, len(line.splitlines())) == (2, 1), line
    extra = EXTRAS[TASKS[task][0]]
    assert any(f" {package}, which is not installed" in line for package, of in EXTRAS.items() if of == extra), line
    assert line.endswith(f"pip install 'fedrec[{extra}]'")
    assert left == ["own.csv"]


@pytest.mark.parametrize("task", BASE)
def test_a_base_install_does_the_work(task: str, done: dict[str, Any]) -> None:
    status, out, said, _ = done[task]
    assert status == 0, said
    assert out


def test_a_comparison_says_that_its_figures_are_left_out(done: dict[str, Any]) -> None:
    assert "pip install 'fedrec[figures]'" in done["compare"][2]
    out = done["folder"] / "out"
    assert {path.name for path in out.glob("compare.*")} == {"compare.md", "compare.csv", "compare.tex", "compare.html"}
    assert ".png" not in (out / "compare.md").read_text(encoding="utf-8")


def test_the_python_side_says_it_too(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setitem(sys.modules, "optuna", None)
    with pytest.raises(BadInput, match=r"pip install 'fedrec\[tune\]'"):
        fedrec.tune("fedavg", trials=1, out=tmp_path)


def test_a_package_that_is_broken_is_not_called_missing(fedrec: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """A package of ours that lacks one of its own is a failure with that name, not bad input."""

    def broken(*_: object) -> None:
        raise ModuleNotFoundError("No module named 'grpc'", name="grpc")

    monkeypatch.setattr("fedrec.cli.doctor._kernel", broken)
    ended = fedrec("doctor")
    assert (ended.status, "grpc" in ended.err) == (1, True)


def test_a_machine_that_has_all_is_said_to_be_well(fedrec: Any) -> None:
    ended = fedrec("doctor")
    assert (ended.status, "all is well" in ended.out) == (0, True), ended.err
    assert re.search(r"^fast kernel +works", ended.out, re.MULTILINE)
    assert re.search(r"^torch +\d", ended.out, re.MULTILINE)


def test_kernels_that_cannot_be_kept_are_no_fault_and_have_a_remedy(
    fedrec: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("fedrec.compiled.kept_in", lambda: None)
    ended = fedrec("doctor")
    assert (ended.status, "set NUMBA_CACHE_DIR to a folder" in ended.out) == (0, True), ended.err


def named(requirements: list[str]) -> set[str]:
    return {re.split(r"[\[<>=!~ ;]", one)[0] for one in requirements} - {"fedrec"}


def test_ranges_in_the_package_and_exact_versions_in_the_lock_file() -> None:
    extras = PROJECT["optional-dependencies"]
    every = PROJECT["dependencies"] + [one for some in extras.values() for one in some]
    assert [one for one in every if "==" in one] == []
    lock = [line for line in (ROOT / "constraints.txt").read_text(encoding="utf-8").splitlines() if line]
    assert [line for line in lock if not re.fullmatch(r"[\w.-]+==[\w.]+", line)] == []
    locked = {line.partition("==")[0].lower().replace("_", "-") for line in lock}
    assert named(PROJECT["dependencies"]) | named(extras["dev"]) | named(extras["deploy"]) <= locked


def test_an_empty_data_folder_is_called_empty(fedrec: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Worlds that are made by code were said to lie in it."""
    monkeypatch.setattr("fedrec.cli.doctor._kernel", lambda: 0)
    monkeypatch.setenv("FEDREC_DATA", str(tmp_path))
    assert f"data folder   {tmp_path}: empty (fedrec data get ml-100k)" in fedrec("doctor").out


def test_a_data_folder_that_is_none_is_a_fault(fedrec: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("fedrec.cli.doctor._kernel", lambda: 0)
    (tmp_path / "file").write_text("")
    monkeypatch.setenv("FEDREC_DATA", str(tmp_path / "file"))
    ended = fedrec("doctor")
    assert ended.status == 1
    assert "IS NOT A FOLDER" in ended.out
    assert "all is well" not in ended.out


def test_a_table_is_not_cut_off_by_a_narrow_terminal(fedrec: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """At 60 columns HR@20 of 0.1750 was shown as 0.1, and the costs not at all."""
    monkeypatch.setenv("COLUMNS", "60")
    monkeypatch.setenv("TTY_COMPATIBLE", "1")
    done = fedrec("compare", "ease", "--seeds", "0", "--quiet", "--out", "c")
    assert done.status == 0, done.err
    shown = re.sub(r"\x1b\[[0-9;]*m", "", done.out).splitlines()
    heads, row = (next(line for line in shown if line.lstrip().startswith(word)) for word in ("method", "popularity"))
    assert heads.split()[-3:] == ["sec", "KiB", "up"]
    assert [len(word) for word in row.split()[1:6]] == [6] * 5


def test_no_clients_are_not_drawn(fedrec: Any) -> None:
    assert fedrec("analyse", "weights", "--rounds", "1", "--clients-shown", "0").status == 2
