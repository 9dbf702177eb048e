"""A run that is killed at any moment, and resumed, gives the uninterrupted result."""

from __future__ import annotations

import json
import multiprocessing
import os
import random
import signal
import sys
import time
from multiprocessing.process import BaseProcess
from pathlib import Path
from typing import Any

import pytest

TIMES = 20
COMMAND = ["run", "fedavg", "--rounds", "30", "--set", "dim=8", "--set", "epochs=2", "--participation", "0.5"]
CONTEXT = multiprocessing.get_context("forkserver")
"""Processes of their own, forked from one that has imported what a run needs: that is not what is killed here."""
CONTEXT.set_forkserver_preload(
    [
        *("fedrec.cli.main", "fedrec.experiment.run", "fedrec.methods.fedavg", "fedrec.evaluation.counting_kernel"),
        *("fedrec.learn.kernel.fused", "fedrec.learn.kernel.samples", "pandas", "scipy.sparse"),
    ]
)


def work(arguments: list[str], folder: Path) -> None:
    from fedrec.cli.main import main

    os.chdir(folder)
    sys.argv = ["fedrec", *arguments, "--quiet"]
    main()


def fedrec(*arguments: str, folder: Path) -> BaseProcess:
    child = CONTEXT.Process(target=work, args=(list(arguments), folder))
    child.start()
    return child


def ended(child: BaseProcess) -> int | None:
    child.join()
    return child.exitcode


def metrics(path: Path) -> dict[str, Any]:
    found = json.loads((path / "result.json").read_text())
    rounds = [json.loads(line) for line in (path / "rounds.jsonl").read_text().splitlines()]
    return {"metrics": found["metrics"], "round": found["selected_round"], "curve": [r["valid"] for r in rounds]}


@pytest.mark.slow
def test_killed_twenty_times_at_random_moments(tmp_path: Path) -> None:
    assert ended(fedrec(*COMMAND, "--out", "whole", folder=tmp_path)) == 0
    expected = metrics(tmp_path / "whole")
    draw = random.Random(7)
    kills = 0
    attempt = 0
    while kills < TIMES:
        attempt += 1
        run = tmp_path / f"run{attempt}"
        child = fedrec(*COMMAND, "--checkpoint-seconds", "0", "--out", str(run), folder=tmp_path)
        for _ in range(4):  # several kills of the same run, some of them while a checkpoint is being written
            deadline = time.monotonic() + 60
            while not (run / "rounds.jsonl").exists() and child.is_alive() and time.monotonic() < deadline:
                time.sleep(0.005)
            time.sleep(draw.random() * 0.25)
            child.kill()
            if ended(child) == 0:  # it was done before
                break
            assert child.exitcode == -signal.SIGKILL
            kills += 1
            child = fedrec("run", "--resume", str(run), folder=tmp_path)
        assert ended(child) == 0
        assert metrics(run) == expected
        assert not list(run.glob(".*.tmp"))
    assert kills >= TIMES


def test_a_checkpoint_is_whole_or_not_there(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A write that dies half-way leaves the last checkpoint as it was."""
    import numpy as np

    from fedrec.core.loop import Progress
    from fedrec.runs import state_file as module
    from fedrec.runs.folder import RunFolder
    from fedrec.runs.settings import RunSettings

    folder = RunFolder.create(tmp_path / "run", RunSettings(method="fedavg"))
    folder.checkpoint(Progress(round=1, best_round=1, best_value=0.5), {"x": np.arange(3)})

    def dies(path: Any, write: Any, private: Any = False) -> None:
        path.with_name(f".{path.name}.99.tmp").write_bytes(b"half")
        raise KeyboardInterrupt

    monkeypatch.setattr(module, "keep_file", dies)
    with pytest.raises(KeyboardInterrupt):
        folder.checkpoint(Progress(round=2, best_round=2, best_value=0.7), {"x": np.arange(4)})
    again = RunFolder.open(tmp_path / "run")
    restored = again.restore()
    assert restored.round == 1
    np.testing.assert_array_equal(restored.state["x"], np.arange(3))
    assert not list((tmp_path / "run").glob(".*.tmp"))


def test_whoever_looks_at_a_run_leaves_what_its_process_is_writing(tmp_path: Path) -> None:
    """A second command on the folder, such as `compare` or a live page, took a half-written checkpoint away."""
    import numpy as np

    from fedrec.core.loop import Progress
    from fedrec.runs.atomic import replace_file
    from fedrec.runs.folder import RunFolder
    from fedrec.runs.settings import RunSettings

    folder = RunFolder.create(tmp_path / "run", RunSettings(method="fedavg"))
    folder.checkpoint(Progress(round=1, best_round=1, best_value=0.5), {"x": np.arange(3)})

    def write(temporary: Path) -> None:
        temporary.write_bytes(b"whole")
        RunFolder.open(folder.path).settings()

    replace_file(folder.path / "other", write)
    assert (folder.path / "other").read_bytes() == b"whole"
