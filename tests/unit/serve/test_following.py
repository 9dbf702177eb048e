"""The page that follows runs shows whatever folders say: none of them ends it for the others."""

from __future__ import annotations

import json
import math
import os
import shlex
import shutil
import time
from pathlib import Path
from typing import Any

import pytest

from fedrec.experiment.resolve import resolve
from fedrec.runs.files import JOB
from fedrec.runs.folder import RunFolder
from fedrec.runs.sealed import sealed_line, sealed_yaml, whole
from fedrec.serve.following import Follower
from fedrec.serve.live import parts_of

SETTINGS = resolve("fedspectral", {"data": "demo", "rounds": 5, "settings": {"k": 4}})
RECORD: dict[str, Any] = {
    "round": 1, "loss": 0.5, "participants": 3, "valid": {"HR@10": 0.1}, "test": None, "seconds": {"train": 1.0},
    "bytes": {"upload": 1.0, "download": 1.0}, "missing": [],
}  # fmt: skip


def made(path: Path, *records: dict[str, Any]) -> Path:
    RunFolder.create(path, SETTINGS)
    lines = [sealed_line({**RECORD, "round": number, **record}) for number, record in enumerate(records, 1)]
    (path / "rounds.jsonl").write_text("".join(line + "\n" for line in lines))
    return path


RECORDS: dict[str, list[dict[str, Any]]] = {
    "no bytes": [{"bytes": {}}],
    "no seconds": [{"seconds": {}}],
    "seconds without end": [{"seconds": {"train": math.inf}}],
    "seconds that are no number": [{"seconds": {"train": math.nan}}],
    "metrics without end": [{"valid": {"HR@10": math.inf}}, {"valid": {"HR@10": 0.5}}, {"valid": {"HR@10": -math.inf}}],
    "metrics that are no number": [{"valid": {"HR@10": math.nan}}] * 2,
    "huge metrics": [{"valid": {"HR@10": 1e308}}, {"valid": {"HR@10": -1e308}}],
    "rounds far apart": [{"round": 1 - (1 << 60)}, {"round": 1 << 60}],
    "one round twice": [{"round": 3}, {"round": 3}],
    "markup": [{"missing": ["<script>x</script>"], "seconds": {"<b>": 1.0}}],
}


@pytest.mark.parametrize("case", RECORDS)
def test_any_record_is_shown(tmp_path: Path, case: str) -> None:
    sound, odd = made(tmp_path / "a", {}, {}), made(tmp_path / "b", *RECORDS[case])
    for path in (tmp_path, sound, odd):
        text = json.dumps(parts_of(Follower(path)), allow_nan=False)
        assert "<script>" not in text
        assert "<b>" not in text
    assert "2 runs" in json.dumps(parts_of(Follower(tmp_path)))


@pytest.mark.parametrize("served", ["{", "[]", "\udcff"])
def test_a_federated_run_whose_last_word_cannot_be_read(tmp_path: Path, served: str) -> None:
    made(tmp_path / "a", {})
    path = made(tmp_path / "b", {})
    (path / "federation.json").write_text("{}")
    (path / "served.json").write_bytes(served.encode(errors="surrogateescape"))
    assert "served.json is damaged" in parts_of(Follower(tmp_path))["runs"]
    assert "served.json is damaged" in parts_of(Follower(path))["state"]


def test_a_folder_whose_name_is_no_text(tmp_path: Path) -> None:
    """Made on another system; the page names it as far as it can, and its link leads there."""
    made(tmp_path / "a", {})
    os.mkdir(os.fsencode(tmp_path) + b"/caf\xe9")
    shutil.copytree(tmp_path / "a", tmp_path / os.fsdecode(b"caf\xe9"), dirs_exist_ok=True)
    found = Follower(tmp_path)
    text = parts_of(found)["runs"]
    text.encode()
    assert "/?run=caf%EF%BF%BD" in text
    assert found.run("caf\ufffd") is not None
    assert "round" in parts_of(found, "caf\ufffd")["state"]


def test_a_run_that_fails_in_a_way_nobody_foresaw_is_one_among_others(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """A number of 20,000 digits in the settings of one run kept `fedrec watch` from starting for all others."""
    made(tmp_path / "sound", {}, {})
    number = made(tmp_path / "number") / "settings.yaml"
    text = number.read_text().rpartition("# ")[0]
    number.write_text(sealed_yaml(text.replace("seed: 0", "seed: 0x" + "f" * 20_000)))
    odd = made(tmp_path / "odd", {})
    (made(tmp_path / "job", {}) / JOB).write_text("{}")
    real = RunFolder.log

    def log(folder: RunFolder, *before: Any) -> Any:
        if folder.path == odd:
            raise AttributeError("of a kind that nobody foresaw")
        return real(folder, *before)

    def fails(path: Path) -> str:
        raise KeyError(path)

    monkeypatch.setattr(RunFolder, "log", log)
    monkeypatch.setattr("fedrec.serve.following.state_of", fails)
    follower = Follower(tmp_path)
    states = {follower.name(run): run.state() for run in follower.runs()}
    assert states["odd"] == "it cannot be read (AttributeError)"
    assert states["job"] == "it cannot be read (KeyError)"
    assert states["sound"] == "running"
    assert "more than 4300 digits" in states["number"]
    assert "4 runs" in json.dumps(parts_of(follower))
    follower.runs()
    assert sum("odd" in line.getMessage() for line in caplog.records) == 1


def test_only_rounds_that_are_new_are_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The whole log was read after every round."""
    path, read = made(tmp_path / "a", *[{}] * 40), list[int]()

    def counted(*given: Any) -> bytes:
        found = whole(*given)
        read.append(len(found))
        return found

    monkeypatch.setattr("fedrec.runs.rounds.whole", counted)
    (run,) = Follower(path).runs()
    lines = (path / "rounds.jsonl").read_text().splitlines(keepends=True)
    more = [sealed_line({**RECORD, "round": number}) + "\n" for number in (41, 42)]
    with open(path / "rounds.jsonl", "a") as file:
        file.write(more[0] + more[1][:30])  # a line that is being written
    run.look()
    with open(path / "rounds.jsonl", "a") as file:
        file.write(more[1][30:])
    run.look()
    assert [record["round"] for record in run.records] == list(range(1, 43))
    assert read == [len("".join(lines)), len(lines[-1] + more[0]) + 30, len("".join(more))]


def test_a_log_that_begins_again_is_read_from_its_start(tmp_path: Path) -> None:
    """As a run does that goes on from an earlier checkpoint; the file is the same one."""
    path = made(tmp_path / "a", {}, {}, {})
    (run,) = Follower(path).runs()
    made(tmp_path / "b", {"loss": 0.25}, {"loss": 0.25}, {"loss": 0.25}, {"loss": 0.25})
    (path / "rounds.jsonl").write_bytes((tmp_path / "b" / "rounds.jsonl").read_bytes())
    run.look()
    assert [record["loss"] for record in run.records] == [0.25] * 4
    (path / "rounds.jsonl").write_text("")
    run.look()
    assert run.records == []


def test_what_is_new_is_checked_as_all_is(tmp_path: Path) -> None:
    path = made(tmp_path / "a", {}, {})
    (run,) = Follower(path).runs()
    with open(path / "rounds.jsonl", "a") as file:
        file.write(json.dumps({**RECORD, "round": 3}) + "\n")
    run.look()
    assert "some of its lines have lost their checksums" in run.state()
    lines = (path / "rounds.jsonl").read_text().splitlines(keepends=True)
    (path / "rounds.jsonl").write_text("".join(lines[:2]) + sealed_line({**RECORD, "round": 3}).replace("0.5", "0.6"))
    with open(path / "rounds.jsonl", "a") as file:
        file.write("\n")
    run.look()
    assert "line 3: its checksum does not fit" in run.state()


def test_a_run_that_was_away_for_a_moment_is_followed_again(tmp_path: Path) -> None:
    path = made(tmp_path / "a", {}, {})
    follower = Follower(path)
    (run,) = follower.runs()
    path.rename(tmp_path / "away")
    follower.runs()
    assert (run.state(), run.done, run.left) == ("it is gone", 2, None)
    (tmp_path / "away").rename(path)
    follower.runs()
    assert run.state() == "running"
    path.rename(tmp_path / "away")
    RunFolder.create(path, SETTINGS.model_copy(update={"rounds": 7}))  # another one in its place
    follower.runs()
    assert (run.rounds, run.done) == (7, 0)


def test_a_run_that_goes_before_anybody_looks_was_there(tmp_path: Path) -> None:
    follower = Follower(made(tmp_path / "a", {}))
    shutil.rmtree(tmp_path / "a")
    assert "it is gone" in parts_of(follower)["state"]


def test_a_run_that_is_gone_from_a_list_is_said_to_be_gone(tmp_path: Path) -> None:
    made(tmp_path / "b", {})
    follower = Follower(tmp_path)
    assert "it is gone" in parts_of(follower, "a")["state"]


def test_the_command_that_goes_on_can_be_typed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    made(tmp_path / "my run's", {})
    now = time.time()
    monkeypatch.setattr("fedrec.serve.following.time.time", lambda: now + 3600)
    (run,) = Follower(tmp_path).runs()
    command = run.state().partition(": ")[2]
    assert shlex.split(command) == ["fedrec", "run", "--resume", str(tmp_path / "my run's")]
