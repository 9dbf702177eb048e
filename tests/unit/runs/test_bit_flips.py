"""A single flipped bit in any stored file is found, and the file named, before anything is computed from it."""

from __future__ import annotations

import random
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from fedrec.core.loop import Progress, Record
from fedrec.errors import BadInput
from fedrec.experiment.prepare import prepare
from fedrec.experiment.resolve import resolve
from fedrec.experiment.run import execute, resume
from fedrec.runs.folder import RunFolder
from fedrec.runs.manifest import Manifest
from killed import Killed

FLIPS = 120


@pytest.fixture(scope="module")
def runs(tmp_path_factory: pytest.TempPathFactory) -> Path:
    home = tmp_path_factory.mktemp("runs")

    def stop(record: Record, progress: Progress) -> None:
        if record.round == 2:
            raise Killed

    for method in ("fedavg", "feddae", "mf"):
        given = {"data": "demo", "rounds": 3, "settings": {"dim": 2, "epochs": 1}, "checkpoint_seconds": 0}
        execute(resolve(method, given), home / method / "finished")
        with pytest.raises(Killed):
            execute(resolve(method, given), home / method / "stopped", stop)
    return home


def flipped(path: Path, bit: int) -> bytes:
    data = bytearray(path.read_bytes())
    data[bit // 8] ^= 1 << bit % 8
    return bytes(data)


def found(path: Path, bit: int, read: Callable[[], Any]) -> None:
    """Whether the flip of one bit makes ``read`` refuse that very file."""
    whole = path.read_bytes()
    path.write_bytes(flipped(path, bit))
    try:
        with pytest.raises(BadInput) as caught:
            read()
    finally:
        path.write_bytes(whole)
    assert str(path) in str(caught.value), f"bit {bit}: {caught.value}"
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize("method", ["fedavg", "feddae", "mf"])
def test_flips_in_checkpoints_and_models(runs: Path, tmp_path: Path, method: str) -> None:
    home = Path(shutil.copytree(runs / method, tmp_path / method))
    expected = prepare(RunFolder.open(home / "finished").settings()).runtime.expected()
    RunFolder.open(home / "finished").model(expected)
    RunFolder.open(home / "stopped").restore(expected)
    draw = random.Random(method)
    for folder, name in (("finished", "model.safetensors"), ("stopped", "checkpoint.safetensors")):
        path = home / folder / name
        header = 8 + int.from_bytes(path.read_bytes()[:8], "little")
        bits = [draw.randrange(8 * path.stat().st_size) for _ in range(FLIPS // 6)]
        bits += [draw.randrange(8 * header) for _ in range(FLIPS // 6)]
        for bit in [*range(64), *bits]:
            if folder == "finished":
                found(path, bit, lambda: RunFolder.open(home / "finished").model(expected))
            else:
                found(path, bit, lambda: RunFolder.open(home / "stopped").restore(expected))


def test_flips_in_a_state_file_without_a_manifest(runs: Path, tmp_path: Path) -> None:
    """The file's own checksum covers every bit of its header, itself included."""
    from fedrec.runs.state_file import load_state

    path = Path(shutil.copy(runs / "fedavg" / "finished" / "model.safetensors", tmp_path))
    expected = prepare(RunFolder.open(runs / "fedavg" / "finished").settings()).runtime.expected()
    load_state(path, expected)
    header = 8 * (8 + int.from_bytes(path.read_bytes()[:8], "little"))
    for bit in random.Random(1).sample(range(header), 250):
        found(path, bit, lambda: load_state(path, expected))


def test_flips_in_a_file_of_many_pieces(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Wherever a piece ends: in the header, within the checksum's own digits, in the arrays."""
    from fedrec.runs import state_file

    for size in (64, 100, 333):
        monkeypatch.setattr(state_file, "PIECE", size)
        path = tmp_path / f"{size}.safetensors"
        state_file.save_state(path, {"x": np.arange(300)}, {"of": "it"})
        value, about = state_file.load_state(path)
        np.testing.assert_array_equal(value["x"], np.arange(300))
        assert about == {"of": "it"}
        for bit in random.Random(size).sample(range(8 * path.stat().st_size), 60):
            found(path, bit, lambda path=path: state_file.load_state(path))  # type: ignore[misc]


@pytest.mark.parametrize(
    ("name", "read"),
    [
        ("settings.yaml", lambda folder: RunFolder.open(folder).settings()),
        ("manifest.json", lambda folder: Manifest(folder)),
        ("result.json", lambda folder: RunFolder.open(folder).result()),
        ("rounds.jsonl", lambda folder: RunFolder.open(folder).records()),
        ("users.parquet", lambda folder: RunFolder.open(folder).per_user()),
    ],
)
def test_flips_in_the_other_files_of_a_finished_run(
    runs: Path, tmp_path: Path, name: str, read: Callable[[Path], Any]
) -> None:
    folder = Path(shutil.copytree(runs / "fedavg" / "finished", tmp_path / "run"))
    read(folder)
    size = 8 * (folder / name).stat().st_size
    for bit in [*random.Random(name).sample(range(size - 800), 60), *random.Random(name).sample(range(size), 60)]:
        found(folder / name, bit, lambda: read(folder))


@pytest.mark.parametrize(
    ("name", "read"),
    [
        ("settings.yaml", lambda folder: RunFolder.open(folder).settings()),
        ("rounds.jsonl", lambda folder: RunFolder.open(folder).records()),
    ],
)
def test_flips_in_the_files_of_a_run_that_goes_on(
    runs: Path, tmp_path: Path, name: str, read: Callable[[Path], Any]
) -> None:
    folder = Path(shutil.copytree(runs / "fedavg" / "stopped", tmp_path / "run"))
    read(folder)
    size = 8 * (folder / name).stat().st_size
    for bit in [*random.Random(2).sample(range(size), 60), *range(size - 800, size, 7), *range(size - 8, size)]:
        found(folder / name, bit, lambda: read(folder))


def test_a_line_that_a_kill_cut_short_is_no_damage(runs: Path, tmp_path: Path) -> None:
    folder = Path(shutil.copytree(runs / "fedavg" / "stopped", tmp_path / "run"))
    path = folder / "rounds.jsonl"
    whole = path.read_bytes()
    first = whole.index(b"\n") + 1
    for end in [*range(first, len(whole), 23), *range(len(whole) - 30, len(whole))]:
        path.write_bytes(whole[:end])
        assert len(RunFolder.open(folder).records()) == 1


def test_lines_that_lost_their_checksums_are_found(runs: Path, tmp_path: Path) -> None:
    folder = Path(shutil.copytree(runs / "fedavg" / "stopped", tmp_path / "run"))
    path = folder / "rounds.jsonl"
    one, two = path.read_bytes().splitlines()
    path.write_bytes(one.rpartition(b', "blake2b"')[0] + b"}\n" + two + b"\n")
    with pytest.raises(BadInput, match="lost their checksums"):
        RunFolder.open(folder).records()


@pytest.mark.parametrize("step", range(1, 6))
def test_a_kill_between_any_two_writes_of_finishing_leaves_a_good_run(
    runs: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, step: int
) -> None:
    """Model, users, manifest, result: whichever is the last that was written, the run goes on to the same end."""
    import os

    folder = Path(shutil.copytree(runs / "fedavg" / "stopped", tmp_path / "run"))
    real, made = os.replace, [0]
    wanted = ["model.safetensors", "users.parquet", "manifest.json", "result.json"]

    def replace(old: Any, new: Any) -> None:
        if Path(new).name in wanted:
            made[0] += 1
            if made[0] == step:
                raise Killed
        real(old, new)

    monkeypatch.setattr(os, "replace", replace)
    if step <= len(wanted):
        with pytest.raises(Killed):
            resume(folder)
        assert not RunFolder.open(folder).finished
    monkeypatch.setattr(os, "replace", real)
    resume(folder)
    ours, whole = RunFolder.open(folder), RunFolder.open(runs / "fedavg" / "finished")
    assert ours.result()["metrics"] == whole.result()["metrics"]
    np.testing.assert_array_equal(ours.per_user().to_numpy(), whole.per_user().to_numpy())
    ours.records(), ours.settings()
