"""Damaged inputs by the hundred thousand: does every one end in a clean refusal, or in being accepted?

    python benchmarks/fuzz.py messages --count 100000 --seconds 3600 --memory 1024
    python benchmarks/fuzz.py messages --repeat 4294967301        one input again, with its traceback

Exit status 0 where nothing was unclean, else 1. Bounded in time and memory (:mod:`fuzz_runner`).
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent))  # started as a file, or loaded by a test

import fuzz_runner

TARGETS = {"files": "fuzz_files:Files", "messages": "fuzz_messages:Messages", "sums": "fuzz_sums:Sums"}


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("target", choices=sorted(TARGETS))
    parser.add_argument("--count", type=int, default=10_000, help="inputs [%(default)s]")
    parser.add_argument("--seconds", type=float, default=600.0, help="time for all of them [%(default)s]")
    parser.add_argument("--memory", type=int, default=1024, help="MiB that inputs may take [%(default)s]")
    parser.add_argument("--seed", type=int, default=1, help="of the damage [%(default)s]")
    parser.add_argument("--kinds", action="store_true", help="also count by kind of damage")
    parser.add_argument("--repeat", type=int, help="the number of one input, tried again here")
    given = parser.parse_args(arguments)
    path = TARGETS[given.target]
    if given.repeat is not None:
        print(fuzz_runner.repeat(path, given.repeat))
        return 0
    report = fuzz_runner.run(path, given.seed, fuzz_runner.Limits(given.count, given.seconds, given.memory))
    for line in report.lines():
        print(line)
    if given.kinds:
        for kind, count in sorted(report.by_kind.items()):
            print(f"  {count:7d}  {kind}")
    return 0 if report.clean else 1


if __name__ == "__main__":
    sys.exit(main())
