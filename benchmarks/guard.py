"""A guard against rounds that become heavier: counts and ratios of a fixed world beside those stored in guard.json.

    python benchmarks/guard.py [METHOD ...]     (exit status 1 names what got worse by more than its tolerance)
    python benchmarks/guard.py --record         (writes guard.json: after a change that is meant, say why in the commit)

Per method, one round with evaluation from the same state: bytes up and down per client, calls of Python and library
functions, the largest memory held at once (all three do not depend on the machine), and CPU seconds beside a fixed
numpy yardstick in the same run.
"""

from __future__ import annotations

import json
import os
import sys
import time
import tracemalloc
from collections.abc import Callable
from pathlib import Path
from typing import Any

os.environ |= {"FEDREC_THREADS": "1", "OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1", "MKL_NUM_THREADS": "1"}

import numpy as np

from fedrec.errors import BadInput
from fedrec.experiment.prepare import prepare
from fedrec.experiment.resolve import resolve
from fedrec.runs.atomic import write_text

FILE = Path(__file__).with_name("guard.json")
WORLD = "scale:users=120,items=100,interactions=2500"
METHODS = ("fedavg", "fedmf", "fedncf", "pfedrec", "fedca", "gpfedrec", "fedspectral", "fedease", "fed3cr", "feddae")
TOLERANCE = {"upload": 0.0, "download": 0.0, "calls": 0.1, "memory": 0.15, "seconds": 0.6}
"""How much worse each may be, as a share: bytes not at all; seconds are noisy even as a ratio of CPU seconds."""
MEANING = {
    "upload": "bytes up per client",
    "download": "bytes down per client",
    "calls": "function calls in a round",
    "memory": "bytes held at once",
    "seconds": "CPU seconds in yardsticks",
}
REPEATS = 3


def yardstick() -> None:
    """Fixed work of numpy: products, transcendental functions, sorting, gathering."""
    rng = np.random.default_rng(0)
    table = rng.random((400, 400), np.float32)
    for _ in range(3):
        table = np.tanh(table @ table / 400)
    np.sort(rng.random(200_000))
    np.add.at(np.zeros(1000), rng.integers(0, 1000, 200_000), 1.0)


class Round:
    """The same round of one method, as often as asked."""

    def __init__(self, method: str) -> None:
        prepared = prepare(resolve(method, {"data": WORLD, "rounds": 2}))
        self.runtime = prepared.runtime
        self.everyone = np.arange(prepared.people.world.n_clients)
        self._make(1)  # compiles, fills caches
        self.state = self.runtime.snapshot()
        self()

    def _make(self, number: int) -> Any:
        return self.runtime.round(number, self.everyone, self.everyone, True)[0]

    def __call__(self) -> Any:
        self.runtime.restore(self.state)
        return self._make(2)


def calls(work: Round) -> int:
    """Functions of Python and of libraries that the round calls."""
    count = 0

    def note(frame: Any, event: str, argument: Any) -> None:
        nonlocal count
        count += event in ("call", "c_call")

    sys.setprofile(note)
    try:
        work()
    finally:
        sys.setprofile(None)
    return count


def memory(work: Round) -> int:
    """The most bytes that the round holds at once, beyond what was there before it (torch's own are not seen)."""
    tracemalloc.start()
    try:
        before = tracemalloc.get_traced_memory()[0]
        work()
        return tracemalloc.get_traced_memory()[1] - before
    finally:
        tracemalloc.stop()


def seconds(work: Round) -> float:
    """The best CPU seconds of the round in those of the yardstick, taken in turns."""
    best = [float("inf")] * 2
    for _ in range(REPEATS):
        pair: tuple[Callable[[], Any], ...] = (yardstick, work)
        for i, one in enumerate(pair):
            began = time.process_time()
            one()
            best[i] = min(best[i], time.process_time() - began)
    return best[1] / best[0]


def measured(method: str) -> dict[str, float]:
    """What one round of a method takes."""
    work = Round(method)
    cost = work()
    counted = {"upload": cost.upload, "download": cost.download, "calls": calls(work), "memory": memory(work)}
    return {name: round(float(value), 3) for name, value in {**counted, "seconds": seconds(work)}.items()}


def worse(method: str, found: dict[str, float], stored: dict[str, float]) -> list[str]:
    """What grew beyond its tolerance."""
    return [
        f"{method}: {MEANING[name]} {stored[name]:g} -> {value:g} (at most {stored[name] * (1 + TOLERANCE[name]):g})"
        for name, value in found.items()
        if name in stored and value > stored[name] * (1 + TOLERANCE[name])
    ]


def read_stored() -> dict[str, dict[str, float]]:
    """What was recorded for this world."""
    try:
        found = json.loads(FILE.read_text(encoding="utf-8"))
        world, methods = found["world"], dict(found["methods"])
    except FileNotFoundError:
        raise BadInput(f"there is no {FILE.name} yet; write it with --record") from None
    except (ValueError, KeyError, TypeError):
        raise BadInput(f"{FILE.name} cannot be read; write it again with --record") from None
    if world != WORLD:
        raise BadInput(f"{FILE.name} was recorded for {world}; write it again with --record")
    return methods


def main(asked: list[str]) -> int:
    record = "--record" in asked
    names = [name for name in asked if name != "--record"]
    try:
        if unknown := [name for name in names if name not in METHODS]:
            raise BadInput(f"{', '.join(unknown)} is not guarded; there are {', '.join(METHODS)}")
        stored = {} if record and not names else read_stored()
    except BadInput as problem:
        print(f"guard: {problem}", file=sys.stderr)
        return 2
    problems: list[str] = []
    print(f"{'':<12}" + "".join(f"{name:>12}" for name in TOLERANCE))
    for method in names or METHODS:
        found = measured(method)
        print(f"{method:<12}" + "".join(f"{found[name]:12g}" for name in TOLERANCE), flush=True)
        if record:
            stored[method] = found
        elif method in stored:
            problems += worse(method, found, stored[method])
        else:
            problems.append(f"{method}: not in {FILE.name}; record it")
    if record:
        write_text(FILE, json.dumps({"world": WORLD, "methods": stored}, indent=1) + "\n")
        print(f"recorded in {FILE.name}")
    elif problems:
        print("\n".join(["", "worse than recorded:", *problems]))
    else:
        print("nothing is worse than recorded")
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
