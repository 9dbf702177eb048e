"""Folders that older versions made can still be read, continued and recommended from, with the figures of then."""

from __future__ import annotations

import csv
import io
import json
import shutil
import tarfile
from pathlib import Path
from typing import Any

import pytest

from command_line import Cli
from fedrec.report.model.runs import load_run

ARCHIVES = sorted(Path(__file__).parent.glob("folders-*.tar.xz"))
KNOWN: dict[str, dict[str, Any]] = {}
for _archive in ARCHIVES:
    with tarfile.open(_archive) as _file:
        _member = _file.extractfile("known.json")
        assert _member is not None
        KNOWN[_archive.name.removeprefix("folders-").removesuffix(".tar.xz")] = json.load(_member)
ONE_PLACE = {"stopped-fedca": 0.1 / 64 + 1e-9}
"""How far metrics of a run may lie from those of then: kernels round otherwise, and one of 64 users moves a place."""


def every(kind: str) -> list[Any]:
    """The folders of a kind, of every version."""
    return [pytest.param(v, name, id=f"{v}-{name}") for v, known in KNOWN.items() for name in known[kind]]


@pytest.fixture(scope="module")
def opened(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """Where the folders of every version lie."""
    places: dict[str, Path] = {}
    for archive, version in zip(ARCHIVES, KNOWN, strict=True):
        places[version] = tmp_path_factory.mktemp("folders")
        with tarfile.open(archive) as file:
            file.extraction_filter = getattr(tarfile, "data_filter", None)  # Python has it from 3.11.4 on
            file.extractall(places[version])
    return places


@pytest.mark.parametrize(("version", "name"), every("finished"))
def test_a_finished_run_recommends_what_it_did(version: str, name: str, opened: dict[str, Path], fedrec: Cli) -> None:
    folder = opened[version] / name
    for user, wanted in KNOWN[version]["finished"][name]["recommend"].items():
        done = fedrec("recommend", folder, "--user", user, "-k", 5)
        assert done.status == 0, done.err
        assert done.out == wanted


@pytest.mark.parametrize(("version", "name"), every("finished"))
def test_a_finished_run_is_read_by_reports(version: str, name: str, opened: dict[str, Path]) -> None:
    folder = opened[version] / name
    run = load_run(folder)
    result = json.loads((folder / "result.json").read_text())
    assert run.method == result["method"]
    assert len(run.rounds) == result["rounds"]
    assert run.per_user is not None
    for metric, value in result["metrics"]["test"].items():
        assert run.per_user[metric].mean() == pytest.approx(value, abs=1e-12)


@pytest.mark.parametrize(("version", "name"), every("finished"))
def test_resuming_a_finished_run_prints_its_result(
    version: str, name: str, opened: dict[str, Path], fedrec: Cli, tmp_path: Path
) -> None:
    done = fedrec("run", "--resume", opened[version] / name, "--json", "again.json", "--quiet")
    assert done.status == 0, done.err
    wanted = json.loads((opened[version] / name / "result.json").read_text())
    assert json.loads((tmp_path / "again.json").read_text()) == wanted


@pytest.mark.parametrize(("version", "name"), every("stopped"))
def test_a_stopped_run_goes_on_to_the_same_end(
    version: str, name: str, opened: dict[str, Path], fedrec: Cli, tmp_path: Path
) -> None:
    folder = tmp_path / name
    shutil.copytree(opened[version] / name, folder)
    done = fedrec("run", "--resume", folder, "--json", "whole.json", "--quiet")
    assert done.status == 0, done.err
    near_enough = ONE_PLACE.get(name, 1e-9)
    wanted, found = KNOWN[version]["stopped"][name], json.loads((tmp_path / "whole.json").read_text())
    lines = [json.loads(line) for line in (folder / "rounds.jsonl").read_text().splitlines()]
    assert [line["round"] for line in lines] == [1, 2, 3, 4, 5, 6]
    for line, before in zip(lines, wanted["rounds"], strict=True):
        assert line["loss"] == pytest.approx(before["loss"], rel=1e-6)
        assert line["bytes"] == before["bytes"]
        assert line["test"] == pytest.approx(before["test"], abs=near_enough)
        assert line["valid"] == pytest.approx(before["valid"], abs=near_enough)
    assert found["selected_round"] == wanted["selected_round"]
    assert found["metrics"]["test"] == pytest.approx(wanted["metrics"]["test"], abs=near_enough)


@pytest.mark.parametrize(("version", "name"), every("nodes"))
def test_a_node_recommends_what_it_did(version: str, name: str, opened: dict[str, Path], fedrec: Cli) -> None:
    for node, users in KNOWN[version]["nodes"][name].items():
        for user, wanted in users.items():
            done = fedrec("deploy", "recommend", "--folder", opened[version] / name / node, "--user", user, "-k", 5)
            assert done.status == 0, done.err
            assert done.out == wanted


@pytest.mark.parametrize(("version", "name"), every("compare"))
def test_a_comparison_is_read_not_run_again(
    version: str, name: str, opened: dict[str, Path], fedrec: Cli, tmp_path: Path
) -> None:
    folder, known = tmp_path / name, KNOWN[version]["compare"][name]
    shutil.copytree(opened[version] / name, folder)
    stamps = {path: path.stat().st_mtime_ns for path in folder.glob("*/result.json")}
    done = fedrec("compare", *sorted(path.parent for path in stamps), "--quiet", "--out", "again")
    assert done.status == 0, done.err
    assert {path: path.stat().st_mtime_ns for path in folder.glob("*/result.json")} == stamps
    assert (tmp_path / "again" / "compare.html").is_file()
    for found, wanted in zip(_rows((tmp_path / "again" / "compare.csv").read_text()), _rows(known["csv"]), strict=True):
        assert found == {key: near(value) for key, value in wanted.items()}


def _rows(text: str) -> list[dict[str, Any]]:
    """The rows of a CSV, numbers as numbers."""
    return [{k: _number(v) for k, v in row.items()} for row in csv.DictReader(io.StringIO(text))]


def _number(text: str) -> Any:
    try:
        return float(text)
    except ValueError:
        return text


def near(value: Any) -> Any:
    """A number need not agree in its last bits."""
    return pytest.approx(value, rel=1e-9, nan_ok=True) if isinstance(value, float) else value


def test_there_are_folders_of_the_first_version() -> None:
    assert len(KNOWN["0.1.0"]["finished"]) > 40
