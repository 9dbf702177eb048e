"""Data sets of a comparison: each once, each in a folder of its own; figures are those of the test part."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from command_line import Cli
from fedrec.errors import BadInput
from fedrec.evaluation.canary import leak_banner
from fedrec.experiment.compare import distinct, folder_of


def test_a_data_set_named_twice_is_taken_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """It was trained, failed, and counted twice in Friedman's test."""
    monkeypatch.chdir(tmp_path)
    Path("r.csv").write_text("u,i\n")
    assert distinct(["demo", "r.csv", "demo", "./r.csv", str(tmp_path / "r.csv")]) == ["demo", "r.csv"]


def test_two_files_of_one_name_are_refused_before_anything_runs(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, fedrec: Cli
) -> None:
    """All runs of the second failed."""
    monkeypatch.chdir(tmp_path)
    for name in "ab":
        Path(name).mkdir()
        (Path(name) / "r.csv").write_text("u,i\n")
    assert folder_of("a/r.csv") == folder_of("b/r.csv")
    with pytest.raises(BadInput, match=r"a/r\.csv and b/r\.csv have one name"):
        distinct(["a/r.csv", "b/r.csv"])
    for command in (["compare", "ease"], ["tune", "fedavg", "--trials", "2"]):
        ended = fedrec(*command, "--data", "a/r.csv,b/r.csv", "--out", "out")
        assert ended.status == 2
        assert "rename one of them" in ended.err
    assert not Path("out").exists()


def test_a_comparison_without_test_figures_is_refused(fedrec: Cli) -> None:
    """It raised the banner of a leak, with nan."""
    ended = fedrec("compare", "ease", "--no-test", "--out", "out")
    assert ended.status == 2
    assert "leave --no-test out" in ended.err


def test_what_was_not_evaluated_is_no_leak() -> None:
    nothing: Any = {"HR@10/99": np.array([np.nan, np.nan])}
    assert leak_banner(nothing, 0.1) is None


def test_a_method_that_sends_no_numbers_can_be_compressed(fedrec: Cli) -> None:
    for kind in ("topk", "int8", "lowrank"):
        ended = fedrec("run", "local", "--rounds", "1", "--set", f"compress={kind}", "--out", kind, "--quiet")
        assert ended.status == 0, ended.err
