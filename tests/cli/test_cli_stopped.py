"""A command that is stopped from outside says so in one line, whatever it was at, and leaves no process behind."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pytest

FEDREC = [sys.executable, "-m", "fedrec"]
PATIENCE = 120.0


def stopped(number: signal.Signals, when: Callable[[], bool], *words: str, folder: Path) -> tuple[int, str]:
    """Exit status and errors of a command that got a signal as soon as something was the case."""
    child = subprocess.Popen(
        [*FEDREC, *words], cwd=folder, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True,
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.default_int_handler),
    )  # fmt: skip
    end = time.monotonic() + PATIENCE
    while not when() and child.poll() is None and time.monotonic() < end:
        time.sleep(0.02)
    child.send_signal(number)
    _, said = child.communicate(timeout=PATIENCE)
    return child.returncode, said


@pytest.mark.parametrize(("number", "status"), [(signal.SIGINT, 130), (signal.SIGTERM, 143)])
def test_a_run_says_how_it_goes_on(tmp_path: Path, number: signal.Signals, status: int) -> None:
    """A termination signal ended it without a word."""
    words = (
        "run",
        "fedavg",
        "--rounds",
        "2000",
        "--set",
        "dim=2",
        "--out",
        "r",
        "--quiet",
        "--checkpoint-seconds",
        "0",
    )
    found = stopped(number, (tmp_path / "r" / "rounds.jsonl").is_file, *words, folder=tmp_path)
    assert found == (status, "fedrec: stopped; `fedrec run --resume r` goes on\n")


def test_a_comparison_stops_its_processes(tmp_path: Path) -> None:
    words = ("compare", "fedavg", "fedmf", "--rounds", "5000", "--set", "dim=2", "--jobs", "2", "--out", "c", "--quiet")
    began = lambda: len([*tmp_path.glob("c/*/rounds.jsonl")]) > 1  # noqa: E731
    status, said = stopped(signal.SIGTERM, began, *words, folder=tmp_path)
    assert status == 143
    assert said.count("\n") == 1
    assert "so far are kept" in said
    here = str(tmp_path)
    cwds = [entry for entry in Path("/proc").glob("[0-9]*/cwd") if os.access(entry, os.R_OK)]
    assert [entry for entry in cwds if os.path.realpath(entry) == here] == []


def test_an_interrupt_during_the_first_imports_is_one_line(tmp_path: Path) -> None:
    """It was a traceback."""
    (tmp_path / "sitecustomize.py").write_text(
        "import sys\n"
        "class Interrupting:\n"
        "    def find_spec(self, name, path, target=None):\n"
        "        if name == 'typer':\n"
        "            raise KeyboardInterrupt\n"
        "sys.meta_path.insert(0, Interrupting())\n"
    )
    path = os.pathsep.join([str(tmp_path), *filter(None, sys.path)])
    done = subprocess.run(
        [*FEDREC, "methods"], capture_output=True, text=True, env={**os.environ, "PYTHONPATH": path}, check=False
    )
    assert (done.returncode, done.stdout, done.stderr) == (130, "", "fedrec: interrupted\n")
