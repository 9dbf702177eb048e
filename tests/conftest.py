"""What every test may use: the command line in process, and settings of all tests.

A machine under load must not fail a test, so properties have no deadline.
A shell that starts tests in the background has them ignore SIGINT, and the programs that they start would ignore it
too: tests that interrupt a program need the usual handling, however they were started.

With several workers (``make test``) kernels and test files are compiled once before the workers start, real federations
come first, because they wait more than they work, and laws and golden cases are dealt out one by one, all others by
file.
"""

from __future__ import annotations

import signal
import subprocess
import sys
import tempfile
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest
from hypothesis import settings

from command_line import Cli, Done
from fedrec.report.figures import files

settings.register_profile("fedrec", deadline=None)
settings.load_profile("fedrec")

if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)


FIRST = ("secure_tls", "how_to", "faults", "stranger", "loopback", "tls", "operating", "hostile", "kill", "sasrec")
"""Files that take longest, by the end of their names."""
ONE_BY_ONE = ("tests/laws/", "tests/golden/")
"""Folders whose tests share nothing."""


def pytest_configure(config: pytest.Config) -> None:
    if config.getoption("numprocesses", None) and not hasattr(config, "workerinput"):
        code = (
            "from fedrec.experiment.resolve import resolve\n"
            "from fedrec.experiment.run import execute\n"
            "for method in ('fedavg', 'fed3cr', 'feddae'):\n"
            "    execute(resolve(method, {'data': 'demo', 'rounds': 1, 'settings': {'dim': 4, 'epochs': 1}}))\n"
        )
        collect = [sys.executable, "-m", "pytest", "--collect-only", "--quiet", *config.args]
        silent = subprocess.DEVNULL
        with tempfile.TemporaryDirectory() as folder, ExitStack() as beside:
            if not sys.dont_write_bytecode:
                beside.enter_context(subprocess.Popen(collect, stdout=silent, stderr=silent))
            subprocess.run([sys.executable, "-c", code], cwd=folder, check=False, stdout=silent)


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config: pytest.Config, log: Any) -> Any:
    from xdist.scheduler import LoadFileScheduling

    class Dealt(LoadFileScheduling):  # type: ignore[misc, unused-ignore]
        def _split_scope(self, nodeid: str) -> str:
            return nodeid if nodeid.startswith(ONE_BY_ONE) else nodeid.split("::", 1)[0]

    return Dealt(config, log)


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    def rank(item: pytest.Item) -> int:
        return next((n for n, name in enumerate(FIRST) if item.path.stem.endswith(name)), len(FIRST))

    items.sort(key=rank)


@pytest.fixture
def fedrec(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path) -> Cli:
    """``fedrec("run", "popularity")`` in an empty folder; gives exit status, output and errors as a shell sees them.

    Figures are written as PNG alone: the fonts of a PDF take longer than the runs that it shows.
    """
    monkeypatch.setattr(files, "KINDS", {".png": files.KINDS[".png"]})
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
