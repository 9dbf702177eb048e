"""What somebody meets in the first five minutes: ``python -m fedrec``, shell completion, Ctrl-C."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

FEDREC = [sys.executable, "-m", "fedrec"]


def call(*words: str, **env: str) -> str:
    done = subprocess.run(
        [*FEDREC, *words], env={**os.environ, **env}, capture_output=True, text=True, check=True, timeout=120
    )
    return done.stdout


def test_the_module_calls_itself_by_the_commands_name() -> None:
    assert "Usage: fedrec [OPTIONS]" in call("--help")


def test_completion_is_for_the_command_however_it_was_asked_for(tmp_path: Path) -> None:
    """A script for ``python -m fedrec`` would break every new shell."""
    call("--install-completion", "bash", HOME=str(tmp_path), _TYPER_COMPLETE_TEST_DISABLE_SHELL_DETECTION="1")
    script = (tmp_path / ".bash_completions" / "fedrec.sh").read_text(encoding="utf-8")
    assert script.strip().endswith("-F _fedrec_completion fedrec")
    asked = {"_FEDREC_COMPLETE": "complete_bash", "COMP_WORDS": "fedrec re", "COMP_CWORD": "1"}
    assert set(call(**asked).split()) == {"recommend", "reproduce"}


@pytest.mark.skipif(os.name == "nt", reason="Windows sends Ctrl-C to a whole console")
def test_ctrl_c_says_how_to_go_on(tmp_path: Path) -> None:
    words = ["run", "fedavg", "--data", "demo", "--rounds", "400", "--set", "engine=torch", "--out", "my runs/first"]
    running = subprocess.Popen(
        [*FEDREC, *words, "--checkpoint-seconds", "0"], cwd=tmp_path, stderr=subprocess.PIPE, text=True
    )
    folder = tmp_path / "my runs" / "first"
    while not (folder / "checkpoint.safetensors").exists():
        assert running.poll() is None
        time.sleep(0.05)
    running.send_signal(signal.SIGINT)
    _, said = running.communicate(timeout=120)
    assert running.returncode == 130
    assert "fedrec run --resume 'my runs/first'" in said
    assert "Traceback" not in said


def test_what_cannot_be_shown_does_not_fail_what_was_done(tmp_path: Path) -> None:
    """A run was finished, and its last line ended the command with exit status 1."""
    env = {**os.environ, "PYTHONIOENCODING": "latin-1:strict"}
    words = [*FEDREC, "run", "popularity", "--quiet", "--out", "r\u4e2d"]
    done = subprocess.run(words, cwd=tmp_path, env=env, capture_output=True, timeout=120, check=False)
    assert done.returncode == 0, done.stderr
    assert done.stdout.splitlines()[-1] == b"run folder: r?"
