"""A file full of holes comes in an archive of a few bytes, and is as large as its maker says."""

from __future__ import annotations

import os
import shutil
from pathlib import Path

import numpy as np
import pytest

import fedrec as package
from fedrec.errors import BadInput
from fedrec.runs import state_file
from fedrec.runs.folder import RunFolder
from fedrec.runs.origin import read_origin
from fedrec.runs.sealed import digest
from fedrec.serve.following import Follower

TERABYTE = 1 << 40


@pytest.fixture(scope="module")
def finished(tmp_path_factory: pytest.TempPathFactory) -> Path:
    made = tmp_path_factory.mktemp("made") / "run"
    package.run("fedspectral", data="demo", rounds=1, out=made, settings={"k": 4})
    return made


@pytest.fixture
def run(finished: Path, tmp_path: Path) -> Path:
    return Path(shutil.copytree(finished, tmp_path / "run"))


def all_texts(folder: RunFolder) -> None:
    read_origin(folder.path)
    folder.result()
    folder.settings()
    folder.fingerprint()


@pytest.mark.parametrize("name", ["result.json", "settings.yaml", "manifest.json", "data.json", "origin.json"])
def test_a_text_of_a_terabyte_is_not_read(run: Path, name: str) -> None:
    """Whoever opened such a folder lost all memory: a service that follows updates by what lies beside its run."""
    (run / name).touch()
    os.truncate(run / name, TERABYTE)
    with pytest.raises(BadInput, match=f"{name} is damaged.*it has {TERABYTE} bytes"):
        all_texts(RunFolder(run))


def test_a_log_of_a_terabyte_is_shown_as_what_it_is(run: Path) -> None:
    for name in ("result.json", "manifest.json"):
        (run / name).unlink()
    os.truncate(run / "rounds.jsonl", TERABYTE)
    (followed,) = Follower(run).runs()
    assert "rounds.jsonl is damaged or was changed: it has" in followed.state()


def test_state_full_of_holes_does_not_take_all_memory(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "state.safetensors"
    state_file.save_state(path, {"rows": np.zeros(1 << 20)})
    data = path.read_bytes()
    monkeypatch.setattr(state_file, "available_mb", lambda: 1.0)
    assert len(state_file.load_state(path)[0]["rows"]) == 1 << 20
    path.unlink()
    with open(path, "wb") as file:
        file.write(data[:4096])
        file.truncate(len(data))
    if path.stat().st_blocks * 512 >= len(data):
        pytest.skip("files have no holes here")
    assert digest(path.read_bytes()) == digest(data)
    with pytest.raises(BadInput, match="full of holes"):
        state_file.load_state(path)
