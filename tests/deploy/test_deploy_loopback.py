"""``fedrec run --runtime flower``: the same result and folder as in process, and nothing left behind."""

from __future__ import annotations

import json
import os
import secrets
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from direct import federation, records_of
from live import PATIENCE, wait

from fedrec.core.loop import Progress
from fedrec.deploy.server.job import Job, write_served
from fedrec.deploy.server.rules import Rules
from fedrec.experiment.prepare import prepare
from fedrec.experiment.resolve import resolve
from fedrec.experiment.run import execute, resume
from fedrec.runs.folder import RunFolder
from fedrec.runs.result import card_of
from killed import Killed

FEDREC = [sys.executable, "-m", "fedrec.cli.main"]
COMMON = ["fcf", "--rounds", "2", "--set", "dim=4", "--set", "epochs=1", "--quiet"]


def fedrec(folder: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run([*FEDREC, *arguments], cwd=folder, capture_output=True, text=True, timeout=PATIENCE)


def trace(word: str) -> list[int]:
    """Processes whose environment holds a word."""
    found = []
    for entry in Path("/proc").glob("[0-9]*/environ"):
        try:
            if word.encode() in entry.read_bytes():
                found.append(int(entry.parent.name))
        except OSError:
            continue
    return found


def test_interrupted_and_resumed_it_leaves_what_an_in_process_run_leaves(tmp_path: Path) -> None:
    word = f"FEDREC_TRIAL={secrets.token_hex(8)}"
    key, _, value = word.partition("=")
    command = [*FEDREC, "run", *COMMON, "--runtime", "flower", "--nodes", "2", "--out", "a"]
    member = subprocess.Popen(command, cwd=tmp_path, env={**os.environ, key: value})
    rounds = tmp_path / "a" / "rounds.jsonl"
    wait(lambda: rounds.is_file() and rounds.read_text().count("\n"), "the first round")
    assert len(trace(word)) > 4
    member.send_signal(signal.SIGTERM)  # as a service manager does; Ctrl-C: tests/deploy/test_deploy_live.py
    assert member.wait(timeout=PATIENCE) == 143
    assert trace(word) == [], "a process was left running"

    over = fedrec(tmp_path, "run", "--resume", "a", "--json", "a.json", "--quiet")
    assert over.returncode == 0, over.stderr
    plain = fedrec(tmp_path, "run", *COMMON, "--out", "b", "--json", "b.json")
    assert plain.returncode == 0, plain.stderr
    one, other = (json.loads((tmp_path / name).read_text()) for name in ("a.json", "b.json"))
    assert one.keys() == other.keys()
    for part in ("valid", "test"):
        assert one["metrics"][part] == pytest.approx(other["metrics"][part], abs=1e-9)
    for name in ("selected_round", "data", "bytes", "privacy", "rounds"):
        assert one[name] == other[name]
    assert {p.name for p in (tmp_path / "a").iterdir()} == {p.name for p in (tmp_path / "b").iterdir()}
    shown = [fedrec(tmp_path, "recommend", name, "--user", "u003", "-k", "5").stdout for name in ("a", "b")]
    assert shown[0] == shown[1] != ""


@pytest.mark.parametrize("epsilon", [8.0, None])
def test_the_card_is_that_of_the_server(epsilon: float | None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The process that waits does not know the noise of the sums, and said that there was none."""
    given = {"secure": True, "secure_by": "nodes", "nodes": 4, "secure_dropout": 0.25, "runtime": "flower"}
    world = {"data": "scale:users=20,items=40,interactions=300", "rounds": 1, "epsilon": epsilon}
    settings = resolve("fedease", {**world, **given})
    made, plan, progress, _ = federation(tmp_path, settings, 4, Rules(wait=0.01, attempts=1, least=0.5))
    records = records_of(made, plan, progress)
    stated = card_of(settings, made.method, records, made)
    waiting = prepare(settings).runtime
    folder = RunFolder.create(tmp_path / "run", settings)
    write_served(folder.path, done=True, card=stated.as_dict())
    monkeypatch.setattr(RunFolder, "restore", lambda *_: Progress())
    monkeypatch.setattr(Job, "read", lambda _: Job(made.rules, 40, "scale", own_data=False, members={}))
    monkeypatch.setattr(waiting, "node_options", lambda _: [])
    monkeypatch.setattr(waiting, "_per_user", lambda *_: None)
    waiting._collect(folder)
    assert card_of(settings, made.method, records, waiting) == stated
    assert stated.epsilon == (pytest.approx(8.0, rel=1e-3) if epsilon else None)


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["popularity", "--runtime", "flower"], "centralised"),
        (["fedavg", "--runtime", "flower", "--nodes", "500"], "500 nodes for 120 clients"),
    ],
)
def test_bad_input_is_one_line(arguments: list[str], words: str, tmp_path: Path) -> None:
    done = fedrec(tmp_path, "run", *arguments, "--out", "run")
    assert done.returncode == 2
    assert words in done.stderr
    assert len(done.stderr.splitlines()) == 1
    assert not (tmp_path / "run").exists()


def test_killed_before_its_result_it_goes_on_to_the_same_end(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """What the nodes keep was gone before the result was there, and such a run could never end."""
    given = {"rounds": 1, "runtime": "flower", "nodes": 4, "secure": True, "secure_by": "nodes", "epsilon": 8.0}
    own = {"secure_dropout": 0.25, "settings": {"dim": 2, "epochs": 1}}
    settings = resolve("fedavg", {"data": "scale:users=20,items=40,interactions=300", **given, **own})
    summed = []

    def dies(_: RunFolder, result: dict[str, Any], *rest: Any) -> None:
        summed.append(result)
        raise Killed

    with monkeypatch.context() as patched:
        patched.setattr(RunFolder, "finish", dies)
        with pytest.raises(Killed):
            execute(settings, tmp_path / "run")
    again = resume(tmp_path / "run")
    for part in ("metrics", "privacy_card", "selected_round"):
        assert again.json[part] == summed[0][part]
    assert {"nodes", "federation.json", "served.json"}.isdisjoint(path.name for path in (tmp_path / "run").iterdir())
