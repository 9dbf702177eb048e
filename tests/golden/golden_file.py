"""The file of figures: one line per case, metrics without their names, what is equal written once."""

from __future__ import annotations

import json
import platform
from collections.abc import Iterator
from importlib.metadata import version
from pathlib import Path
from typing import Any

import numpy as np
from golden_figures import Figures

FILE = Path(__file__).parent / "golden.json"
Packed = dict[str, Any]
SAME = "="
FEW = 1000
"""Neighbouring floats further apart than this are written out."""
LIBRARIES = ("numpy", "scipy", "scikit-learn", "torch", "numba")


def machine() -> dict[str, str]:
    """What the last bits of a float may depend on."""
    names = Path("/proc/cpuinfo")
    lines = names.read_text().splitlines() if names.is_file() else []
    model = next((line.partition(":")[2].strip() for line in lines if line.startswith("model name")), "")
    return {
        "processor": model or platform.machine(),
        "python": platform.python_version(),
        **{n: version(n) for n in LIBRARIES},
    }


def read() -> tuple[dict[str, str], dict[str, dict[str, Figures]]]:
    """The machine that recorded, and the figures of every case: ``cases[name][runtime]``."""
    whole = json.loads(FILE.read_text(encoding="utf-8"))
    cases: dict[str, dict[str, Figures]] = {}
    for name, packed in whole["cases"].items():
        cases[name] = {"simulate": _open(packed["simulate"], whole["metrics"])}
        if "deploy" in packed:
            filled = _filled(packed["deploy"], packed["simulate"])
            cases[name]["deploy"] = _open(filled, whole["metrics"])
    return whole["machine"], cases


def write(cases: dict[str, dict[str, Figures]]) -> None:
    """Record ``cases`` as made on this machine."""
    metrics: list[list[str]] = []
    lines = []
    for name, runtimes in sorted(cases.items()):
        packed = {runtime: _pack(figures, metrics) for runtime, figures in runtimes.items()}
        if "deploy" in packed:
            packed["deploy"] = _beside(packed["deploy"], packed["simulate"])
        lines.append(f"{json.dumps(name)}: {json.dumps(packed, separators=(',', ':'))}")
    head = f'{{"machine": {json.dumps(machine())},\n"metrics": {json.dumps(metrics)},\n"cases": {{\n'
    FILE.write_text(head + ",\n".join(lines) + "\n}}\n", encoding="utf-8")


def _pack(figures: Figures, metrics: list[list[str]]) -> Packed:
    rounds = []
    for one in figures["rounds"]:
        packed = [one["loss"], one["participants"], one["missing"], *one["bytes"]]
        for part in ("valid", "test"):
            if one[part] is not None and list(one[part]) not in metrics:
                metrics.append(list(one[part]))
            packed.append(None if one[part] is None else [metrics.index(list(one[part])), *one[part].values()])
        rounds.append(packed)
    return {**figures, "rounds": rounds}


def _beside(packed: Packed, other: Packed) -> Packed:
    """Rounds as what differs from the other runtime: metrics summed in another order differ in last bits."""
    rounds = [[_step(*both) for both in zip(*pair, strict=True)] for pair in _pairs(packed, other)]
    return {**packed, "rounds": rounds}


def _filled(packed: Packed, other: Packed) -> Packed:
    """What :func:`_beside` was given."""
    rounds = [[_walk(*both) for both in zip(*pair, strict=True)] for pair in _pairs(packed, other)]
    return {**packed, "rounds": rounds}


def _pairs(packed: Packed, other: Packed) -> Iterator[tuple[list[Any], list[Any]]]:
    return zip(packed["rounds"], other["rounds"], strict=True)


def _step(mine: Any, theirs: Any) -> Any:
    if mine == theirs:
        return SAME
    if isinstance(mine, list) and isinstance(theirs, list) and mine[0] == theirs[0]:
        steps = np.array(mine[1:], np.float64).view(np.int64) - np.array(theirs[1:], np.float64).view(np.int64)
        if np.abs(steps).max() < FEW:
            return {"last_bits": steps.tolist()}
    return mine


def _walk(mine: Any, theirs: Any) -> Any:
    if isinstance(mine, dict):
        moved = np.array(theirs[1:], np.float64).view(np.int64) + np.array(mine["last_bits"], np.int64)
        return [theirs[0], *moved.view(np.float64).tolist()]
    return theirs if mine == SAME else mine


def _open(packed: Packed, metrics: list[list[str]]) -> Figures:
    rounds = []
    for loss, participants, missing, up, down, *parts in packed["rounds"]:
        means = [v if v is None else dict(zip(metrics[v[0]], v[1:], strict=True)) for v in parts]
        rounds.append(
            {
                "loss": loss,
                "participants": participants,
                "missing": missing,
                "bytes": [up, down],
                "valid": means[0],
                "test": means[1],
            }
        )
    return {**packed, "rounds": rounds}
