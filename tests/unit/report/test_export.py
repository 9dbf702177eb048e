"""Histories for TensorBoard and MLflow, read back with these tools' own readers."""

from __future__ import annotations

import re
import sys
from pathlib import Path, PurePosixPath
from types import SimpleNamespace
from typing import Any

import pytest

import fedrec as package
from command_line import Cli
from fedrec.errors import BadInput
from fedrec.report.export import exporting
from fedrec.report.export.exporting import Export, export, exported, sinks
from fedrec.report.export.history import Numbers, numbers_of, outcome_of
from fedrec.report.export.mlflow import _allowed
from fedrec.runs.folder import RunFolder
from fedrec.runs.settings import RunSettings


class Heard:
    """A tool that remembers."""

    def __init__(self, has: int = 0) -> None:
        self.has = has
        self.rounds: list[int] = []
        self.ended: Numbers = {}
        self.closed = 0

    def begin(self, name: str, key: str, settings: RunSettings) -> int:
        return self.has

    def round(self, number: int, seconds: float, values: Numbers) -> None:
        self.rounds.append(number)

    def end(self, number: int, values: Numbers) -> None:
        self.ended = values

    def close(self) -> None:
        self.closed += 1


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("run") / "mine"
    package.run("fedspectral", data="demo", rounds=3, out=folder, settings={"k": 4})
    return folder


def test_tensorboard_reads_what_was_exported(run: Path, tmp_path: Path, fedrec: Cli) -> None:
    pytest.importorskip("tensorboard")
    from tensorboard.backend.event_processing.event_accumulator import EventAccumulator

    for _ in range(2):  # a second export takes the place of the first
        done = fedrec("export", run, "--tensorboard", tmp_path / "board")
        assert (done.status, done.out) == (0, f"{tmp_path / 'board'}: 3 rounds\n")
    read = EventAccumulator(str(tmp_path / "board" / "mine")).Reload()
    records, result = RunFolder(run).records(), RunFolder(run).result()
    curve = [(event.step, event.value) for event in read.Scalars("valid/HR@10/99")]
    assert curve == [(r["round"], pytest.approx(r["valid"]["HR@10/99"], rel=1e-6)) for r in records]
    assert [event.value for event in read.Scalars("participants")] == [120.0] * 3
    (chosen,) = read.Scalars("selected/test/HR@10/99")
    assert (chosen.step, chosen.value) == (
        result["selected_round"], pytest.approx(result["metrics"]["test"]["HR@10/99"], rel=1e-6),
    )  # fmt: skip
    assert not [tag for tag in read.Tags()["scalars"] if tag.startswith("test")]


def test_mlflow_has_the_run_once(run: Path, tmp_path: Path, fedrec: Cli) -> None:
    pytest.importorskip("mlflow")
    from mlflow.tracking import MlflowClient

    uri = f"sqlite:///{tmp_path / 'runs.db'}"
    for _ in range(2):  # the second time nothing is new
        assert fedrec("export", run, "--mlflow", uri).status == 0
    client = MlflowClient(uri)
    experiment = client.get_experiment_by_name("fedrec")
    assert experiment is not None
    (found,) = client.search_runs([experiment.experiment_id])
    assert (found.info.run_name, found.info.status) == ("mine", "FINISHED")
    assert found.data.params["method"] == "fedspectral"
    assert found.data.params["settings.k"] == "4"
    curve = client.get_metric_history(found.info.run_id, "valid/HR_at_10_99")
    assert [(m.step, m.value) for m in curve] == [
        (r["round"], r["valid"]["HR@10/99"]) for r in RunFolder(run).records()
    ]


def test_names_for_mlflow_are_files_beside_one_another(run: Path) -> None:
    """Its file store keeps a metric as a file: HR_at_10 and HR_at_10/99 cannot both be there."""
    result = RunFolder(run).result()
    names = [name for record in RunFolder(run).records() for name in numbers_of(record)]
    names += [*outcome_of(result), "selected/test/MRR@10!"]
    allowed = {_allowed(name) for name in names}
    assert len(allowed) == len(set(names))
    assert {"valid/HR_at_10", "valid/HR_at_10_99", "selected/test/MRR_at_10_published"} <= allowed
    assert not [name for name in allowed if re.search(r"[^\w\-. :/]", name)]
    folders = {str(parent) for name in allowed for parent in PurePosixPath(name).parents}
    assert not allowed & folders


def test_what_a_store_of_mlflow_lacks_is_named_with_the_extra(monkeypatch: pytest.MonkeyPatch) -> None:
    """sqlite:///FILE needs SQLAlchemy and alembic, which MLflow imports when the store is first used."""

    class Client:
        def __init__(self, uri: str) -> None:
            raise ModuleNotFoundError("No module named 'sqlalchemy'", name="sqlalchemy")

    entities = SimpleNamespace(Metric=None, Param=None)
    parts = {"": SimpleNamespace(), ".entities": entities, ".tracking": SimpleNamespace(MlflowClient=Client)}
    for name, part in parts.items():
        monkeypatch.setitem(sys.modules, f"mlflow{name}", part)
    with pytest.raises(BadInput, match=r"needs sqlalchemy, .* pip install 'fedrec\[mlflow\]'"):
        sinks(None, "sqlite:///runs.db")


def test_a_run_that_goes_on_is_followed(run: Path, tmp_path: Path) -> None:
    heard, going = Heard(), tmp_path / "going"
    one = Export(going, heard)
    one.look()  # it has not begun
    made = RunFolder.create(going, RunFolder(run).settings())
    lines = (run / "rounds.jsonl").read_text().splitlines(keepends=True)
    for line in lines:
        with open(made.path / "rounds.jsonl", "a") as handle:
            handle.write(line)
        one.look()
        one.look()
    assert heard.rounds == [1, 2, 3]
    assert not one.finished
    for file in run.iterdir():
        (going / file.name).write_bytes(file.read_bytes())
    assert export(going, [known := Heard(has=2)], follow=True) == [3]
    assert (known.rounds, known.closed) == ([3], 1)
    assert known.ended["selected/test/HR@10"] == RunFolder(run).result()["metrics"]["test"]["HR@10"]


def test_a_tool_that_fails_does_not_end_the_run(run: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(exporting, "EVERY", 0.01)
    said: list[str] = []
    broken, heard = Heard(), Heard()

    def away(*_: Any) -> None:
        raise ConnectionError("the server\nis away")

    monkeypatch.setattr(broken, "round", away)
    with exported(run, [broken, heard], said.append):
        pass
    (line,) = said
    assert "the server is away" in line
    assert "fedrec export" in line
    assert (heard.rounds, heard.closed) == ([1, 2, 3], 1)


def test_what_is_not_finite_is_left_out() -> None:
    record = {"loss": float("nan"), "participants": 3, "missing": ["a: late"], "valid": None,
              "seconds": {"train": 1.5}, "bytes": {"upload": float("inf")}}  # fmt: skip
    assert numbers_of(record) == {"participants": 3.0, "missing": 1.0, "seconds/train": 1.5}


@pytest.mark.parametrize("tool", ["tensorboard", "mlflow"])
def test_a_missing_package_is_one_line(tool: str, tmp_path: Path, fedrec: Cli, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in [name for name in sys.modules if name.split(".")[0] == tool]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.setitem(sys.modules, tool, None)
    done = fedrec("run", "popularity", "--data", "demo", "--out", "run", f"--{tool}", "place")
    assert (done.status, len(done.err.splitlines())) == (2, 1)
    assert f"fedrec[{tool}]" in done.err
    assert not (tmp_path / "run").exists()


def test_where_nothing_can_be_written_is_one_line(run: Path, tmp_path: Path, fedrec: Cli) -> None:
    (tmp_path / "file").touch()
    done = fedrec("export", run)
    assert (done.status, "--tensorboard" in done.err) == (2, True)
    assert fedrec("export", tmp_path, "--tensorboard", "board").status == 2
    assert not (tmp_path / "board").exists()
    pytest.importorskip("tensorboard")
    with pytest.raises(BadInput, match="is a file"):
        sinks(tmp_path / "file", None)


def test_a_run_writes_its_history_as_it_goes(tmp_path: Path, fedrec: Cli) -> None:
    pytest.importorskip("tensorboard")
    done = fedrec("run", "popularity", "--data", "demo", "--quiet", "--out", "run", "--tensorboard", tmp_path / "board")
    assert (done.status, done.err) == (0, "")
    assert list((tmp_path / "board" / "run").iterdir())
