"""What every test may use: the command line in process, and settings of all tests.

A machine under load must not fail a test, so properties have no deadline.
A shell that starts tests in the background has them ignore SIGINT, and the programs that they start would ignore it
too: tests that interrupt a program need the usual handling, however they were started.

With several workers (``make test``) kernels and test files are compiled once before the workers start. Files are dealt
out whole, laws and golden cases one by one and last. Real federations wait more than they work: they are dealt out from
the start, each followed by a file that computes, so that neither all workers wait nor all compute.
"""

from __future__ import annotations

import signal
import subprocess
import sys
import tempfile
from contextlib import ExitStack
from itertools import zip_longest
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


WAITING = ("live", "how_to", "stranger", "faults", "hostile", "federation", "loopback", "tls", "secure", "operating")
"""Files with real federations, by the end of their names, the longest first."""
COMPUTING = ("kill", "sasrec")
"""Others that take long."""
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
    files: dict[str, list[pytest.Item]] = {}
    for item in items:
        files.setdefault(item.nodeid.split("::", 1)[0], []).append(item)

    def long(name: str) -> int:
        ends = [n for n, end in enumerate(WAITING + COMPUTING) if name.endswith(f"{end}.py")]
        return min(ends, default=len(WAITING + COMPUTING) + name.startswith(ONE_BY_ONE))

    waiting = sorted((name for name in files if long(name) < len(WAITING) and "/deploy/" in name), key=long)
    computing = sorted((name for name in files if name not in waiting), key=long)
    both = [name for pair in zip_longest(waiting, computing) for name in pair if name is not None]
    items[:] = [item for name in both for item in files[name]]


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
