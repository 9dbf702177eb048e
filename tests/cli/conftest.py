"""Calls the command line in process, as a shell would see it."""

from __future__ import annotations

import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest


@dataclass
class Done:
    status: int
    out: str
    err: str


@pytest.fixture
def fedrec(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path) -> Any:
    """``fedrec("run", "popularity")`` in an empty folder; gives exit status, output and errors."""
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
