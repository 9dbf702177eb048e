"""A file that has lost its checksum, or is gone, is noticed wherever others still tell that it was there."""

from __future__ import annotations

import json
import logging
import os
import shutil
from pathlib import Path
from typing import Any

import pytest

from fedrec.errors import BadInput
from fedrec.experiment.resolve import resolve
from fedrec.experiment.run import execute, resume
from fedrec.runs import folder as module
from fedrec.runs import sealed
from fedrec.runs.folder import RunFolder
from fedrec.runs.manifest import write_manifest
from killed import Killed

GIVEN: dict[str, Any] = {"rounds": 3, "checkpoint_seconds": 0.0, "settings": {"dim": 2, "epochs": 1}}


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    home = tmp_path_factory.mktemp("runs")

    def stop(record: Any, _: Any) -> None:
        if record.round == 2:
            raise Killed

    execute(resolve("fedavg", GIVEN), home / "finished")
    with pytest.raises(Killed):
        execute(resolve("fedavg", GIVEN), home / "stopped", stop)
    return home


@pytest.fixture
def runs(made: Path, tmp_path: Path) -> Path:
    return Path(shutil.copytree(made, tmp_path / "runs"))


def cut(path: Path) -> None:
    """Leave the first lines, as a disk that lost a block does."""
    lines = path.read_text().splitlines(keepends=True)
    path.write_text("".join(lines[:5]))


@pytest.mark.parametrize("alone", ["data.json", "checkpoint.safetensors", "rounds.jsonl"])
def test_settings_without_a_checksum_are_damage_beside_one_that_has_one(runs: Path, alone: str) -> None:
    """A cut file passed for one from before there were checksums, and the run went on with other settings."""
    for name in {"data.json", "checkpoint.safetensors", "rounds.jsonl"} - {alone}:
        (runs / "stopped" / name).unlink()
    cut(runs / "stopped" / "settings.yaml")
    with pytest.raises(BadInput, match=r"settings.yaml is damaged or was changed: its checksum is gone"):
        resume(runs / "stopped")


@pytest.mark.parametrize("name", ["finished", "stopped"])
def test_cut_settings_are_one_line_without_a_warning_before_it(
    runs: Path, name: str, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sealed, "_warned", False)
    cut(runs / name / "settings.yaml")
    with pytest.raises(BadInput, match=r"settings.yaml is damaged"):
        RunFolder.open(runs / name).settings()
    assert caplog.record_tuples == []


def test_settings_of_an_older_version_get_a_checksum_before_anything_else_does(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """Killed again after it was resumed, such a run looked damaged else."""
    caplog.set_level(logging.ERROR)
    old = Path(shutil.copytree(Path(__file__).parent / "of_0_1_0" / "unfinished", tmp_path / "old"))
    before = RunFolder.open(old).settings()

    def stop(*_: Any) -> None:
        raise Killed

    with pytest.raises(Killed):
        resume(old, stop)
    assert RunFolder.open(old).settings() == before
    assert sealed.read_sealed_yaml(old / "settings.yaml", must=True)
    assert resume(old).json["rounds"] == 3


def test_a_finished_run_without_its_result_is_not_made_again(runs: Path) -> None:
    """It was trained once more, without a word."""
    (runs / "finished" / "result.json").unlink()
    before = (runs / "finished" / "rounds.jsonl").read_bytes()
    for _ in range(2):
        with pytest.raises(BadInput, match=r"result.json is damaged or was changed: it is gone"):
            resume(runs / "finished")
    assert (runs / "finished" / "rounds.jsonl").read_bytes() == before


@pytest.mark.parametrize("seconds", [0.0, 60.0])
def test_a_kill_between_manifest_and_result_is_no_such_loss(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, seconds: float
) -> None:
    def killed(*_: Any) -> None:
        raise Killed

    def dies(*given: Any) -> None:
        write_manifest(*given)
        raise Killed

    with monkeypatch.context() as patched:
        patched.setattr(module, "write_manifest", dies)
        patched.setattr(Path, "unlink", lambda *_, **__: None)  # who is killed clears nothing up
        with pytest.raises(Killed):
            execute(resolve("fedavg", {**GIVEN, "checkpoint_seconds": seconds}), tmp_path / "run")
    assert (tmp_path / "run" / "manifest.json").is_file()
    with monkeypatch.context() as patched:  # killed once more, when it has just begun to go on
        patched.setattr(RunFolder, "seal_settings", killed)
        with pytest.raises(Killed):
            resume(tmp_path / "run")
    assert resume(tmp_path / "run").json["rounds"] == 3


def test_an_interrupt_between_them_is_no_such_loss(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def stops(*given: Any) -> None:
        write_manifest(*given)
        raise KeyboardInterrupt

    with monkeypatch.context() as patched:
        patched.setattr(module, "write_manifest", stops)
        with pytest.raises(KeyboardInterrupt):
            execute(resolve("fedavg", {**GIVEN, "checkpoint_seconds": 60.0}), tmp_path / "run")
    assert resume(tmp_path / "run").json["rounds"] == 3


@pytest.mark.parametrize("number", [30, 27, 13])  # a mount that is only read, a limit on files, no permission
def test_a_run_that_cannot_be_written_says_so_in_one_line(
    runs: Path, monkeypatch: pytest.MonkeyPatch, number: int
) -> None:
    """It was `failed: OSError: [Errno 30]`, and status 1."""

    def refused(*_: Any, **__: Any) -> None:
        raise OSError(number, os.strerror(number))

    before = {path.name: path.read_bytes() for path in (runs / "stopped").iterdir()}
    with monkeypatch.context() as patched:
        patched.setattr(Path, "unlink", refused)
        patched.setattr(os, "replace", refused)
        with pytest.raises(BadInput, match=f"write .*{os.strerror(number)}") as caught:
            resume(runs / "stopped")
    assert "\n" not in str(caught.value)
    assert {path.name: path.read_bytes() for path in (runs / "stopped").iterdir() if path.suffix != ".tmp"} == before
    assert resume(runs / "stopped").json["rounds"] == 3
    assert json.loads((runs / "stopped" / "result.json").read_text())["rounds"] == 3
