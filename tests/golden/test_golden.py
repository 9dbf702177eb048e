"""Toy runs of every method whose figures are written down: a change of any number must be meant.

Metrics, losses and bytes are compared to 1e-9 on a machine like the one that recorded them, and loosely on another.
``FEDREC_GOLDEN_EXACT=1`` compares bit for bit, the arrays of all state as well, and deploys every case.
After a meant change ``FEDREC_WRITE_GOLDEN=1 python -m pytest tests/golden`` rewrites the file (with ``-k`` for some
cases only); say why in the commit.
"""

from __future__ import annotations

import os
import sys
import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Literal, get_args, get_origin

import numpy as np
import pytest

sys.path.insert(0, str(Path(__file__).parent))  # the golden tests share modules

import golden_file
from golden_cases import CASES, THREADS_SHOW, deployed_always
from golden_figures import Figures, deployed, is_federated, simulated

from fedrec.methods.registry import BUILT_IN, find

EXACT = bool(os.environ.get("FEDREC_GOLDEN_EXACT"))
WRITE = bool(os.environ.get("FEDREC_WRITE_GOLDEN"))
DEPLOYED = [name for name in CASES if is_federated(CASES[name]) and (EXACT or WRITE or name in deployed_always())]

ELSEWHERE = {"metric": 0.06, "loss": 1e-3, "bytes": 0.02}
"""How far figures may move on another processor: two users of 40 may change places."""


class Known:
    """The recorded figures, and those that are recorded now."""

    def __init__(self) -> None:
        self.machine, self.cases = golden_file.read() if golden_file.FILE.is_file() else ({}, {})
        self.new: dict[str, dict[str, Figures]] = {}
        here = golden_file.machine()
        self.same_machine = self.machine == here
        if not (self.same_machine or WRITE or EXACT):
            differs = ", ".join(
                f"{k} {self.machine.get(k)} -> {v}" for k, v in here.items() if self.machine.get(k) != v
            )
            warnings.warn(f"golden figures were recorded elsewhere and are compared loosely ({differs})", stacklevel=1)

    def save(self) -> None:
        merged = {name: {**self.cases.get(name, {}), **self.new.get(name, {})} for name in CASES}
        golden_file.write({name: runtimes for name, runtimes in merged.items() if runtimes})


@pytest.fixture(scope="module")
def known() -> Iterator[Known]:
    found = Known()
    yield found
    if WRITE:
        found.save()


@pytest.mark.parametrize("name", CASES)
def test_the_toy_run_gives_its_figures(name: str, known: Known) -> None:
    compare(name, "simulate", simulated(CASES[name]), known)


@pytest.mark.parametrize("name", DEPLOYED)
def test_the_deployed_toy_run_gives_its_figures(name: str, known: Known, tmp_path: Path) -> None:
    compare(name, "deploy", deployed(CASES[name], tmp_path), known)


def test_every_method_has_a_case() -> None:
    assert {case.method for case in CASES.values()} == set(BUILT_IN)
    assert all(name in CASES for name in deployed_always() | THREADS_SHOW)


def test_every_value_of_a_choice_is_in_a_case() -> None:
    """A choice that no case makes is a way through the code that no figure keeps."""
    made: dict[tuple[str, frozenset[str]], set[str]] = {}
    for case in CASES.values():
        settings = find(case.method).Settings(**case.settings)
        for name, field in type(settings).model_fields.items():
            if isinstance(field.default, str) and get_origin(field.annotation) is Literal:
                made.setdefault((name, frozenset(get_args(field.annotation))), {"auto"}).add(getattr(settings, name))
    assert len(made) > 20
    assert not [f"{name}={value}" for (name, choices), values in made.items() for value in choices - values]


def compare(name: str, runtime: str, found: Figures, known: Known) -> None:
    if WRITE:
        known.new.setdefault(name, {})[runtime] = found
        return
    wanted = known.cases[name][runtime]
    if EXACT:
        assert found["rounds"] == wanted["rounds"]  # floats written by repr come back bit for bit
        if name in THREADS_SHOW:
            near_states(found["states"], wanted["states"])
        else:
            assert found["states"] == wanted["states"]
    else:
        near_rounds(found["rounds"], wanted["rounds"], known.same_machine)
        if known.same_machine:
            near_states(found["states"], wanted["states"])


def near_rounds(found: list[Figures], wanted: list[Figures], same_machine: bool) -> None:
    metric, loss, size = (1e-9, 1e-9, 1e-9) if same_machine else ELSEWHERE.values()
    for one, other in zip(found, wanted, strict=True):
        assert (one["participants"], one["missing"]) == (other["participants"], other["missing"])
        assert one["loss"] == pytest.approx(other["loss"], rel=loss, abs=loss)
        assert one["bytes"] == pytest.approx(other["bytes"], rel=size)
        for part in ("valid", "test"):
            assert (one[part] is None) == (other[part] is None)
            assert one[part] is None or one[part] == pytest.approx(other[part], abs=metric)


def near_states(found: dict[str, list[list[Any]]], wanted: dict[str, list[list[Any]]]) -> None:
    """The same arrays in any order: shape and type alike, sums to 1e-6 of the array's size."""
    assert set(found) == set(wanted)
    for part in wanted:
        assert sorted(one[:2] for one in found[part]) == sorted(one[:2] for one in wanted[part]), part
        for one, other in zip(found[part], wanted[part], strict=True):
            scale = max(1.0, float(str(other[3])))
            np.testing.assert_allclose(one[2:5], other[2:5], rtol=1e-6, atol=1e-6 * scale, err_msg=f"{part} {other}")
