"""A machine with torch and numpy alone: everything still trains, only slower."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from fedrec.experiment.resolve import resolve
from fedrec.experiment.run import execute

BLOCKED = """
import importlib.util, sys
BLOCKED = {"numba", "llvmlite", "matplotlib", "pyarrow", "flwr", "dp_accounting"}

class Missing:
    def find_spec(self, name, path=None, target=None):
        if name.split(".")[0] in BLOCKED:
            raise ModuleNotFoundError(f"No module named {name!r}", name=name)

sys.meta_path.insert(0, Missing())
found = importlib.util.find_spec
importlib.util.find_spec = lambda name, package=None: None if name.split(".")[0] in BLOCKED else found(name, package)
"""


METHODS = ("fedavg", "fed3cr", "feddae")
RUNS = """
import sys
from fedrec.cli.main import main
out, *methods = sys.argv[1:]
for method in methods:
    common = ["--data", "demo", "--rounds", "1", "--set", "dim=4", "--set", "epochs=1", "--quiet"]
    sys.argv = ["fedrec", "run", method, *common, "--out", f"{out}/{method}"]
    try:
        main()
    except SystemExit as stop:
        assert not stop.code, method
"""


def test_runs_without_numba_give_the_same_results(tmp_path: Path) -> None:
    (tmp_path / "sitecustomize.py").write_text(BLOCKED)
    path = os.pathsep.join(filter(None, [str(tmp_path), os.environ.get("PYTHONPATH")]))
    done = subprocess.run(
        [sys.executable, "-c", RUNS, str(tmp_path), *METHODS], env={**os.environ, "PYTHONPATH": path},
        capture_output=True, text=True, check=False, timeout=600,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    for method in METHODS:
        out = tmp_path / method
        assert (out / "users.csv").is_file()
        found = json.loads((out / "result.json").read_text(encoding="utf-8"))["metrics"]["test"]
        given = {"data": "demo", "rounds": 1, "settings": {"dim": 4, "epochs": 1}}
        for metric, value in execute(resolve(method, given)).metrics.items():
            assert found[metric] == pytest.approx(value, abs=0.02), method
