"""A few thousand damaged messages; `python benchmarks/fuzz.py messages` tries as many as one likes."""

from __future__ import annotations

import random
import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parents[2] / "benchmarks"))

import fuzz_runner
from fuzz_messages import FewMessages
from fuzz_sums import Sums

COUNT = 1500


def test_no_damaged_message_ends_badly(tmp_path: Path) -> None:
    target = FewMessages()
    target.prepare(tmp_path)
    found = {"accepted": 0, "refused": 0}
    for index in range(COUNT):
        number = fuzz_runner.number_of(7, index)
        try:
            found[target.attempt(random.Random(number))] += 1
        except Exception as problem:
            pytest.fail(f"number {number}, {target.doing}: {type(problem).__name__}: {problem}")
    assert found["refused"] > COUNT / 2
    assert found["accepted"] > COUNT / 50, "damage that leaves nothing to accept tests little"


def test_no_damaged_letter_of_a_secure_sum_gives_a_wrong_sum(tmp_path: Path) -> None:
    target = Sums()
    target.prepare(tmp_path)
    found = {target.attempt(random.Random(fuzz_runner.number_of(7, index))) for index in range(60)}
    assert found == {"accepted", "refused"}


def test_the_runner_finds_what_goes_wrong() -> None:
    limits = fuzz_runner.Limits(count=200, seconds=300, memory_mb=256)
    report = fuzz_runner.run("fuzz_toy:Toy", 1, limits)
    assert report.total == 200
    assert not report.clean
    kinds = {one.what.partition(":")[0].partition(" (")[0] for one in report.unclean}
    assert kinds == {"KeyError", "MemoryError", "the process died"}
    assert report.outcomes["died"] + report.outcomes["unclean"] == len(report.unclean)
    with pytest.raises(KeyError):
        fuzz_runner.repeat("fuzz_toy:Toy", next(one.number for one in report.unclean if "KeyError" in one.what))
