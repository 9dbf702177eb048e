"""Runs that begin at once and name no folder."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from command_line import Cli
from fedrec.runs.claim import claimed
from fedrec.runs.folder import RunFolder


def test_each_gets_a_folder_of_its_own(tmp_path: Path) -> None:
    command = [sys.executable, "-m", "fedrec", "run", "popularity", "--data", "demo", "--quiet"]
    started = [
        subprocess.Popen(command, cwd=tmp_path, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        for _ in range(3)
    ]
    for one in started:
        _, said = one.communicate(timeout=300)
        assert one.returncode == 0, said
    made = sorted(path.name for path in (tmp_path / "runs").iterdir())
    assert made == [f"popularity-demo-strict-seed0{end}" for end in ("", "-2", "-3")]
    assert all(RunFolder.open(tmp_path / "runs" / name).finished for name in made)


def test_a_claim_that_came_to_nothing_is_gone(tmp_path: Path) -> None:
    base = tmp_path / "runs"
    with claimed(base, "a") as first, claimed(base, "a") as second:
        assert (first.name, second.name) == ("a", "a-2")
        (second / "settings.yaml").write_text("x")
    assert [path.name for path in base.iterdir()] == ["a-2"]
    with pytest.raises(ZeroDivisionError), claimed(tmp_path / "other", "a"):
        raise ZeroDivisionError
    assert not (tmp_path / "other").exists()


def test_bad_input_leaves_no_folder(fedrec: Cli, tmp_path: Path) -> None:
    assert fedrec("run", "popularity", "--data", "missing.csv").status == 2
    assert fedrec("run", "popularity", "--min-interactions", "100000").status == 2
    assert not list(tmp_path.iterdir())
