"""How seconds of a round grow with interactions, clients, items and dimension: exponents of a fit, and a figure.

    python benchmarks/growth.py [--methods fedavg,fedmf,fedspectral] [--size 1.0] [--out growth.svg]

One of the four is doubled again and again while the others stay (more clients bring their interactions with them). A
round has no evaluation; it takes the best of several, in CPU seconds on one thread, which other work on the machine
moves less than the clock. Interactions are those that are trained on. The exponent is the slope of a least-squares line
through the logarithms: 1 is linear, and what every round takes whatever the size makes it smaller.
"""

from __future__ import annotations

import argparse
import os
import sys
import time
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

os.environ |= {"FEDREC_THREADS": "1", "OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1", "MKL_NUM_THREADS": "1"}

import numpy as np

from fedrec.core.population import population
from fedrec.core.reference import Reference
from fedrec.core.settings import build
from fedrec.data.synthetic.scalable import scalable
from fedrec.errors import BadInput
from fedrec.evaluation.protocols import find as find_protocol
from fedrec.methods.registry import find as find_method
from fedrec.report.figures.canvas import FAINT, INK, PALETTE, sheet
from fedrec.report.figures.files import KINDS, save
from fedrec.simulate.runtime import Simulator

DOUBLINGS = 5
REPEATS = 5
DIMENSION = {"fedspectral": "k"}
"""The setting that is the dimension, where it is not ``dim``."""


@dataclass(frozen=True)
class Size:
    """How large a world and a model are."""

    clients: int = 8_000
    items: int = 4_000
    each: int = 20  # interactions per client
    dim: int = 16

    @property
    def interactions(self) -> int:
        return self.clients * self.each


FIELDS = {"interactions": "each", "clients": "clients", "items": "items", "dimension": "dim"}
"""What is made larger for each axis of the figure."""
Curve = list[tuple[int, float]]


def sizes(axis: str, scale: float) -> list[Size]:
    """Worlds along one axis, the others fixed."""
    middle = replace(Size(), clients=max(50, int(Size().clients * scale)), items=max(200, int(Size().items * scale)))
    field = FIELDS[axis]
    start = max(4, getattr(middle, field) // 2 ** (DOUBLINGS // 2))
    return [replace(middle, **{field: start * 2**step}) for step in range(DOUBLINGS)]


def seconds(method: str, size: Size) -> tuple[int, float]:
    """Interactions that are trained on, and the best CPU seconds of a round without evaluation."""
    data = scalable(users=size.clients, items=size.items, interactions=size.interactions)
    task = find_protocol("strict").prepare(data, 0)
    kind: Any = find_method(method)
    settings = build(kind.Settings, {DIMENSION.get(method, "dim"): size.dim}, method)
    sim = Simulator(kind(settings), population(task), task, 0, evaluate_users=1)
    everyone = np.arange(sim.people.world.n_clients)
    sim.round(1, everyone[:50], everyone[:50], False)  # compiles
    best = float("inf")
    for number in range(2, 2 + REPEATS):
        began = time.process_time()
        sim.round(number, everyone, everyone, False)
        best = min(best, time.process_time() - began)
    return int(sim.people.block.sizes.sum()), best


def exponent(curve: Curve) -> float:
    """The slope of the logarithms.

    >>> round(exponent([(1, 3.0), (2, 6.0), (4, 12.0)]), 3)
    1.0
    """
    x, y = np.log(np.array(curve, float)).T
    return float(np.polyfit(x, y, 1)[0])


def measured(methods: list[str], scale: float) -> dict[str, dict[str, Curve]]:
    """Size and seconds, per axis and method; printed as they come."""
    found: dict[str, dict[str, Curve]] = {}
    for axis in FIELDS:
        found[axis] = {}
        for method in methods:
            curve = []
            for size in sizes(axis, scale):
                trained, took = seconds(method, size)
                curve.append((trained if axis == "interactions" else getattr(size, FIELDS[axis]), took))
            found[axis][method] = curve
            points = "  ".join(f"{x}: {y:.3f}" for x, y in curve)
            print(f"{axis:<13}{method:<13}exponent {exponent(curve):5.2f}   {points}", flush=True)
    return found


def figure(found: dict[str, dict[str, Curve]], out: Path) -> None:
    """A panel per axis, both scales logarithmic."""
    drawn = sheet(11.0, 3.2, fitted=True)
    for panel, (axis, curves) in enumerate(found.items()):
        axes = drawn.add_subplot(1, len(found), panel + 1)
        for colour, (method, curve) in zip(PALETTE, curves.items(), strict=False):
            x, y = zip(*curve, strict=True)
            axes.loglog(x, y, marker="o", markersize=3.5, color=colour, label=f"{method} {exponent(curve):.2f}")
        axes.set_xlabel(axis, color=INK)
        axes.grid(True, which="major", color=FAINT, linewidth=0.6)
        axes.legend(frameon=False, fontsize=8, title="exponent", title_fontsize=8)
        axes.minorticks_off()
        if not panel:
            axes.set_ylabel("CPU seconds per round", color=INK)
    save(drawn, out)
    print(f"drawn in {out}")


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--methods", default="fedavg,fedmf,fedspectral", help="names with commas between")
    parser.add_argument("--size", type=float, default=1.0, help="clients and items of the middle, as a share of usual")
    parser.add_argument("--out", type=Path, help=f"where to draw the figure ({', '.join(KINDS)})")
    given = parser.parse_args()
    try:
        if given.size <= 0:
            raise BadInput(f"--size {given.size:g} is no size; give a number above 0")
        if given.out is not None and (given.out.suffix not in KINDS or not given.out.parent.is_dir()):
            raise BadInput(f"--out {given.out}: give a file in a folder that is there, ending in {', '.join(KINDS)}")
        methods = given.methods.split(",")
        for method in methods:
            if issubclass(find_method(method), Reference):
                raise BadInput(f"{method} is centralised and has no rounds of clients; leave it out")
        found = measured(methods, given.size)
        if given.out is not None:
            figure(found, given.out)
    except BadInput as problem:
        print(problem, file=sys.stderr)
        return 2
    return 0


if __name__ == "__main__":
    sys.exit(main())
