"""Folders of 0.1.0 stay readable, wherever their classes have moved since: no checksums, names as ``module:class``."""

from __future__ import annotations

import json
import logging
import re
import shutil
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import fedrec
from fedrec.core.kinds import state_name
from fedrec.core.old_names import OLD_NAMES
from fedrec.core.population import population
from fedrec.core.reference import Reference
from fedrec.core.settings import build
from fedrec.core.state import flatten, unflatten
from fedrec.data.filters import keep_users
from fedrec.data.load import load
from fedrec.evaluation.protocols import find as find_protocol
from fedrec.experiment.run import resume
from fedrec.methods.registry import find, names
from fedrec.runs import sealed
from fedrec.runs.folder import RunFolder
from fedrec.simulate.central import CentralRun
from fedrec.simulate.runtime import Simulator

OLD = Path(__file__).parent / "of_0_1_0"
STRUCTURES = json.loads((OLD / "structures.json").read_text())


@pytest.fixture
def old(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setattr(sealed, "_warned", False)
    return Path(shutil.copytree(OLD, tmp_path / "old"))


def warnings(caplog: pytest.LogCaptureFixture) -> list[str]:
    return [record.getMessage() for record in caplog.records if record.levelno >= logging.WARNING]


def test_a_finished_run_recommends_with_its_data_and_says_so(old: Path, caplog: pytest.LogCaptureFixture) -> None:
    run = fedrec.open_run(old / "finished")
    assert len(run.recommend("u001", 5)) == 5
    assert run.folder is not None
    assert [record["round"] for record in run.folder.records()] == [1, 2, 3]
    assert len(run.folder.per_user()) == 120
    assert len(warnings(caplog)) == 2
    assert "made before checksums" in warnings(caplog)[0]
    assert "the data is read again" in warnings(caplog)[1]


def test_an_unfinished_run_goes_on_and_ends_with_checksums(old: Path, caplog: pytest.LogCaptureFixture) -> None:
    before = RunFolder.open(old / "unfinished").records()
    resume(old / "unfinished")
    folder = RunFolder.open(old / "unfinished")
    assert folder.finished
    assert (old / "unfinished" / "manifest.json").is_file()
    assert folder.records()[: len(before)] == before
    assert [record["round"] for record in folder.records()] == [1, 2, 3]
    assert len(warnings(caplog)) == 1


def test_a_run_of_today_warns_of_nothing(
    tmp_path: Path, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sealed, "_warned", False)
    fedrec.run("popularity", out=tmp_path / "run")
    fedrec.open_run(tmp_path / "run").recommend("u001", 5)
    assert warnings(caplog) == []


@cache
def started(number: int) -> Any:
    """The runtime of one of the old structures, before its first round."""
    case = STRUCTURES[number]
    kind = find(case["method"], case["settings"])
    method: Any = kind(build(kind.Settings, case["settings"], case["method"]))
    data = load("demo")
    task = find_protocol("strict").prepare(keep_users(data, np.arange(data.n_users) < 20), 3)
    return (CentralRun if isinstance(method, Reference) else Simulator)(method, population(task), task, 3)


@pytest.mark.parametrize("number", range(len(STRUCTURES)), ids=lambda number: STRUCTURES[number]["method"])
def test_the_state_of_every_method_is_found_under_its_old_name(number: int) -> None:
    """A class that is moved or renamed keeps its state name, or is entered in the table of old names."""
    text = json.dumps(STRUCTURES[number]["structure"])
    arrays = {path: np.zeros(1, np.float32) for path in re.findall(r'"array": "([^"]*)"', text)}
    back = unflatten(arrays, text, started(number).expected())
    today = flatten(back)[1]
    assert ":" not in "".join(re.findall(r'"class": "([^"]*)"', today))
    arrays = {path: np.zeros(1, np.float32) for path in re.findall(r'"array": "([^"]*)"', today)}
    unflatten(arrays, today, started(number).expected())


def test_every_method_of_0_1_0_is_tried() -> None:
    assert {case["method"] for case in STRUCTURES} >= set(names()) - {"biased", "fedca-approx", "fedelsa"}
    assert any(case["settings"].get("neighbours") for case in STRUCTURES if case["method"] == "fedca")


def test_old_names_are_those_of_0_1_0_and_lead_to_one_state_each() -> None:
    used = set(re.findall(r'"class": "([^"]*)"', json.dumps([case["structure"] for case in STRUCTURES])))
    assert used <= OLD_NAMES.keys()
    assert len(set(OLD_NAMES.values())) == len(OLD_NAMES)


def test_state_names_are_unique() -> None:
    """Two methods' states must not be taken for one another."""
    owners: dict[str, type[Any]] = {}
    for number in range(len(STRUCTURES)):
        for part in started(number).snapshot().values():
            assert owners.setdefault(state_name(type(part)), type(part)) is type(part)
    assert len(owners) == len(set(OLD_NAMES.values()) - {"Block", "Rows", "Ragged", "Share", "Held"})
