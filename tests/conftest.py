"""What every test may use: the command line in process, and settings of all tests.

A machine under load must not fail a test, so properties have no deadline.
A shell that starts tests in the background has them ignore SIGINT, and the programs that they start would ignore it
too: tests that interrupt a program need the usual handling, however they were started.
"""

from __future__ import annotations

import signal
import sys
from pathlib import Path

import pytest
from hypothesis import settings

from command_line import Cli, Done

settings.register_profile("fedrec", deadline=None)
settings.load_profile("fedrec")

if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)


@pytest.fixture
def fedrec(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path) -> Cli:
    """``fedrec("run", "popularity")`` in an empty folder; gives exit status, output and errors as a shell sees them."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("COLUMNS", "140")

    def call(*arguments: object) -> Done:
        from fedrec.cli.main import main

        monkeypatch.setattr(sys, "argv", ["fedrec", *map(str, arguments)])
        status = 0
        try:
            main()
        except SystemExit as stop:
            status = int(stop.code or 0)
        captured = capsys.readouterr()
        return Done(status, captured.out, captured.err)

    return call
