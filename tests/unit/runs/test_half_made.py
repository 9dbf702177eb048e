"""A process that is killed while it makes a run's folder leaves nothing that the next one stumbles over."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from fedrec.core.loop import Progress
from fedrec.data.fingerprint import Fingerprint
from fedrec.errors import BadInput
from fedrec.experiment.jobs import folder_state
from fedrec.experiment.resolve import resolve
from fedrec.experiment.run import execute, resume
from fedrec.experiment.update import update
from fedrec.runs.alone import alone
from fedrec.runs.folder import RunFolder
from fedrec.runs.origin import Origin
from fedrec.runs.settings import RunSettings
from killed import killed_before

GIVEN: dict[str, Any] = {"data": "demo", "rounds": 2, "settings": {"dim": 2, "epochs": 1}}


@pytest.mark.parametrize("name", ["data.json", "settings.yaml"])
def test_such_a_folder_counts_as_new(tmp_path: Path, name: str) -> None:
    """`--out` said to go on with --resume, and --resume that it was no run's folder."""
    out, settings = tmp_path / "run", resolve("fedavg", GIVEN)
    with killed_before(name):
        execute(settings, out)
    assert any(entry.name.endswith(".tmp") for entry in out.iterdir())
    assert folder_state(out, settings) == "new"
    with pytest.raises(BadInput, match=r"holds no run yet.*--out"):
        resume(out)
    result = execute(settings, out)
    assert result.folder is not None
    assert not [entry for entry in out.iterdir() if entry.name.startswith(".")]


def test_what_an_update_left_counts_as_new(tmp_path: Path) -> None:
    origin = Origin("a", "b", 1, False, 0, {"users": 0, "items": 0, "interactions": 1})
    start = Progress(round=1, state={})
    RunFolder.create(tmp_path / "run", RunSettings(method="fedavg"), origin=origin, start=start)
    (tmp_path / "run" / "settings.yaml").unlink()
    assert {path.name for path in (tmp_path / "run").iterdir()} == {"origin.json", "checkpoint.safetensors"}
    folder = RunFolder.create(tmp_path / "run", RunSettings(method="fedavg"))
    assert {path.name for path in folder.path.iterdir()} == {"settings.yaml"}


@pytest.mark.parametrize("name", ["data.json", "origin.json", "notes.txt", "rounds.jsonl", ".settings.yaml.x.tmp"])
def test_what_is_somebody_elses_stays(tmp_path: Path, name: str) -> None:
    (tmp_path / ".settings.yaml.7.tmp").write_text("half")
    (tmp_path / name).write_text('{"my own": "data"}\n')
    settings = resolve("fedavg", GIVEN)
    with pytest.raises(BadInput, match="already used"):
        execute(settings, tmp_path)
    with pytest.raises(BadInput, match="something other"):
        folder_state(tmp_path, settings)
    assert (tmp_path / name).read_text() == '{"my own": "data"}\n'


def test_what_another_process_is_making_stays(tmp_path: Path) -> None:
    (tmp_path / ".settings.yaml.7.tmp").write_text("half")
    with alone(tmp_path), pytest.raises(BadInput, match="another fedrec works in"):
        execute(resolve("fedavg", GIVEN), tmp_path)
    assert (tmp_path / ".settings.yaml.7.tmp").is_file()


def test_the_fingerprint_is_there_before_the_settings(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A kill between them left a run that could never be updated."""
    seen = []
    write = RunFolder.write_fingerprint

    def noting(folder: RunFolder, *given: Any) -> None:
        seen.append((folder.path / "settings.yaml").exists())
        write(folder, *given)

    monkeypatch.setattr(RunFolder, "write_fingerprint", noting)
    execute(resolve("fedavg", GIVEN), tmp_path / "run")
    assert seen == [False]


def test_a_run_that_an_earlier_version_left_without_one_gets_it(tmp_path: Path) -> None:
    (tmp_path / "d.csv").write_text("".join(f"u{u},i{(u * 7 + k * 3) % 40}\n" for u in range(30) for k in range(8)))
    settings = resolve("fedavg", {**GIVEN, "data": str(tmp_path / "d.csv"), "checkpoint_seconds": 0.0})
    RunFolder.create(tmp_path / "run", settings)
    resume(tmp_path / "run")
    found, place = RunFolder.open(tmp_path / "run").fingerprint()
    assert isinstance(found, Fingerprint)
    assert place == tmp_path / "d.csv"
    with open(tmp_path / "d.csv", "a") as file:
        file.write("u0,i1\n")
    assert update(tmp_path / "run", rounds=1).json["rounds"] == 3


def test_a_run_that_has_learnt_already_gets_none(tmp_path: Path) -> None:
    """Its data may have changed since."""

    def stop(*_: Any) -> None:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        execute(resolve("fedavg", {**GIVEN, "checkpoint_seconds": 0.0}), tmp_path / "run", stop)
    (tmp_path / "run" / "data.json").unlink()
    resume(tmp_path / "run")
    assert not (tmp_path / "run" / "data.json").exists()
