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


@pytest.mark.parametrize("method", ["fedavg", "fed3cr", "feddae"])
def test_a_run_without_numba_gives_the_same_result(method: str, tmp_path: Path) -> None:
    (tmp_path / "sitecustomize.py").write_text(BLOCKED)
    words = [sys.executable, "-m", "fedrec.cli.main", "run", method, "--data", "demo", "--rounds", "1", "--quiet"]
    path = os.pathsep.join(filter(None, [str(tmp_path), os.environ.get("PYTHONPATH")]))
    out = tmp_path / "without"
    done = subprocess.run(
        [*words, "--set", "dim=4", "--set", "epochs=1", "--out", str(out)],
        env={**os.environ, "PYTHONPATH": path}, capture_output=True, text=True, check=False, timeout=300,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    assert (out / "users.csv").is_file()
    found = json.loads((out / "result.json").read_text(encoding="utf-8"))["metrics"]["test"]
    given = {"data": "demo", "rounds": 1, "settings": {"dim": 4, "epochs": 1}}
    for metric, value in execute(resolve(method, given)).metrics.items():
        assert found[metric] == pytest.approx(value, abs=0.02)
