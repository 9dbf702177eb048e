"""A short run of the file fuzzer; the long one is a command (benchmarks/fuzz_files.py)."""

from __future__ import annotations

import random
import sys
from pathlib import Path

import pytest

BENCHMARKS = Path(__file__).parents[3] / "benchmarks"


def test_damaged_files_are_read_or_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.syspath_prepend(str(BENCHMARKS))
    from fuzz_files import Files

    target = Files()
    target.prepare(tmp_path)
    outcomes = [target.attempt(random.Random(number)) for number in range(300)]
    assert set(outcomes) == {"accepted", "refused"}
    sys.modules.pop("fuzz_files")
