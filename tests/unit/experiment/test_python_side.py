"""What Python and a notebook show of a result."""

from __future__ import annotations

import pickle
import subprocess
import sys
import types
from pathlib import Path
from typing import Any

import pandas as pd
import pytest

import fedrec
from command_line import Cli
from fedrec.errors import BadInput
from fedrec.experiment.resolve import resolve
from fedrec.report.figures.files import save
from fedrec.runs.folder import RunFolder


@pytest.fixture
def cli(request: pytest.FixtureRequest) -> Cli:
    """The command line; the package's own name is taken here."""
    found: Cli = request.getfixturevalue("fedrec")
    return found


def test_a_result_is_short_in_text_and_whole_in_html(tmp_path: Path) -> None:
    """The text was 444,736 characters long: all arrays of the data."""
    result = fedrec.run("fcf", data="demo", rounds=3, out=tmp_path / "run", settings={"dim": 4, "epochs": 1})
    for one in (result, fedrec.open_run(tmp_path / "run")):
        assert len(repr(one)) < 300
        assert "fcf on demo, strict, seed 0, round" in repr(one)
        html = one._repr_html_()
        assert "<table>" in html
        assert "<polyline" in html
        assert len(html) < 5000
        assert f"{result.metrics['HR@10']:.4f}" in html


@pytest.mark.parametrize("method", ["fedavg", "fedspectral", "feddae"])
def test_a_result_goes_to_another_process(method: str) -> None:
    """As from a process pool: with its model, and without a folder."""
    result = fedrec.run(method, data="demo", rounds=1)
    code = (
        "import pickle, sys\n"
        "result = pickle.load(sys.stdin.buffer)\n"
        "print(result.metrics['HR@10'], result.recommend('u001', k=3)[0].item)\n"
    )
    done = subprocess.run([sys.executable, "-c", code], input=pickle.dumps(result), capture_output=True, check=True)
    assert done.stdout.decode().split() == [str(result.metrics["HR@10"]), result.recommend("u001", k=3)[0].item]


def test_history_and_lists_are_dataframes(tmp_path: Path) -> None:
    result = fedrec.run("fcf", data="demo", rounds=3, out=tmp_path / "run", settings={"dim": 4, "epochs": 1})
    history = result.history
    assert history["round"].tolist() == [1, 2, 3]
    assert {"loss", "valid HR@10", "test HR@10", "seconds train", "bytes upload"} <= set(history.columns)
    assert fedrec.open_run(tmp_path / "run").history.equals(history)
    table = result.recommend(["u003", "u001"], k=4)
    assert list(table.columns) == ["user", "rank", "item", "title", "score"]
    assert table["user"].unique().tolist() == ["u003", "u001"]
    assert table[table.user == "u001"]["item"].tolist() == [r.item for r in result.recommend("u001", 4)]
    assert len(result.recommend(None, k=2)) == 240


def test_every_figure_is_an_object(tmp_path: Path) -> None:
    result = fedrec.run("fcf", data="demo", rounds=2, settings={"dim": 4, "epochs": 1})
    axes = result.figure("HR@10").axes[0]
    assert [line.get_label() for line in axes.lines[::2]] == ["valid", "test"]
    assert axes.lines[0].get_ydata()[-1] == result.history["valid HR@10"].iloc[-1]  # type: ignore[index]
    with pytest.raises(BadInput, match="no metric 'HR@11' in this run"):
        result.figure("HR@11")
    found = fedrec.compare(["fcf"], rounds=2, seeds=[0], out=tmp_path / "c", settings={"dim": 4, "epochs": 1})
    assert len(repr(found)) < 300
    assert "<table" in found._repr_html_()
    dots, curves = found.figure(), found.figure("rounds")
    assert dots is not None
    assert curves is not None
    assert {"fcf", "popularity"} <= {text.get_text() for text in dots.axes[0].get_yticklabels()}
    assert r"\textbf" not in found.latex()  # one method of its group: nothing is best
    assert "popularity" in found.table["method"].tolist()
    for name in ("a.png", "a.svg", "a.pdf"):
        save(dots, tmp_path / name)
        first = (tmp_path / name).read_bytes()
        save(dots, tmp_path / name)
        assert (tmp_path / name).read_bytes() == first
    with pytest.raises(BadInput, match=r"end the name in \.png, \.svg, \.pdf"):
        save(dots, tmp_path / "a.gif")


class FakeDisplay:
    """Stands for IPython: what is displayed, and how often it was written over."""

    def __init__(self) -> None:
        self.shown: list[str] = []

    def module(self) -> dict[str, types.ModuleType]:
        whole, part = types.ModuleType("IPython"), types.ModuleType("IPython.display")
        whole.get_ipython = lambda: types.SimpleNamespace(kernel=object())  # type: ignore[attr-defined]
        part.HTML = str  # type: ignore[attr-defined]
        part.display = self.display  # type: ignore[attr-defined]
        return {"IPython": whole, "IPython.display": part}

    def display(self, html: str, display_id: bool) -> FakeDisplay:
        self.shown.append(html)
        return self

    def update(self, html: str) -> None:
        self.shown[-1] = html


def test_a_notebook_has_one_bar_and_a_script_plain_lines(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    options: Any = {"rounds": 3, "settings": {"dim": 4, "epochs": 1}}
    fedrec.run("fcf", **options)
    assert capsys.readouterr() == ("", "")
    fedrec.run("fcf", progress=True, **options)
    assert "fcf: round 3/3  loss" in capsys.readouterr().err
    fake = FakeDisplay()
    for name, module in fake.module().items():
        monkeypatch.setitem(sys.modules, name, module)
    fedrec.run("fcf", **options)
    assert len(fake.shown) == 1
    assert '<progress value="3" max="3">' in fake.shown[0]
    fedrec.run("fcf", progress=False, **options)
    assert len(fake.shown) == 1
    fedrec.compare(["fcf"], seeds=[0], out=tmp_path / "c", **options)
    assert len(fake.shown) == 2
    assert '<progress value="4" max="4">' in fake.shown[1]
    assert capsys.readouterr().err == ""


def test_the_package_can_be_run_as_a_module() -> None:
    done = subprocess.run([sys.executable, "-m", "fedrec", "--version"], capture_output=True, text=True, check=True)
    assert done.stdout.startswith("fedrec ")


def test_an_interrupt_says_how_to_go_on(cli: Cli, monkeypatch: pytest.MonkeyPatch) -> None:
    from fedrec.experiment import run as running

    def stop(settings: object, folder: Path, *_: object) -> None:
        folder.mkdir(parents=True, exist_ok=True)
        if folder.name == "my run":  # else it stops while the data is read
            (folder / "settings.yaml").touch()
        raise KeyboardInterrupt

    monkeypatch.setattr(running, "execute", stop)
    done = cli("run", "fcf", "--out", "my run")
    assert done.status == 130
    assert "`fedrec run --resume 'my run'` goes on" in done.err
    assert done.err.count("\n") == 1
    assert cli("run", "fcf").err == "fedrec: interrupted\n"
    assert not Path("runs").exists()


def test_a_run_that_is_not_finished_says_how_to_go_on(cli: Cli) -> None:
    RunFolder.create(Path("my run"), resolve("fcf", {"data": "demo"}))
    with pytest.raises(BadInput, match="`fedrec run --resume 'my run'`"):
        RunFolder.open(Path("my run")).result()


def test_shells_can_complete(cli: Cli) -> None:
    assert "--show-completion" in cli("--help").out


def test_a_table_in_memory_is_data_like_any_other(tmp_path: Path) -> None:
    rows = [(f"u{user:02}", f"i{(user * 7 + n * (n + 1) // 2) % 40:02}", n) for user in range(30) for n in range(9)]
    frame = pd.DataFrame(rows, columns=["who", "what", "when"])
    named = "user=who,item=what,time=when"
    (tmp_path / "own.csv").write_text(frame.to_csv(index=False))
    one = fedrec.run("fedspectral", frame, rounds=2, settings={"k": 4}, columns=named, out=tmp_path / "run")
    two = fedrec.run("fedspectral", fedrec.load(frame, columns=named), rounds=2, settings={"k": 4})
    file = fedrec.run("fedspectral", tmp_path / "own.csv", rounds=2, settings={"k": 4}, columns=named)
    assert one.metrics == two.metrics == file.metrics
    assert fedrec.open_run(tmp_path / "run").recommend("u03", 3) == one.recommend("u03", 3)
    with pytest.raises(BadInput, match="was a table in memory, which is gone"):
        fedrec.update(tmp_path / "run", rounds=1)
    with pytest.raises(BadInput, match="data of type list cannot be used"):
        fedrec.run("fedspectral", [1, 2])


def test_too_few_interactions_name_nobody() -> None:
    frame = pd.DataFrame({"user": ["anna", "anna", "bert"], "item": [1, 2, 3]})
    with pytest.raises(BadInput, match=r"^2 of 2 users of frame have fewer than 3 interactions") as found:
        fedrec.run("popularity", frame)
    assert "anna" not in str(found.value)


def test_options_of_reading_are_refused_for_data_that_was_read_already() -> None:
    loaded = fedrec.load("demo")
    with pytest.raises(BadInput, match=r"min_interactions, min_rating: this data is loaded already"):
        fedrec.run("fedspectral", loaded, rounds=1, min_interactions=30, min_rating=4)


def test_nobody_asked_for_is_an_empty_table() -> None:
    found = fedrec.run("popularity").recommend([], k=3)
    assert list(found) == ["user", "rank", "item", "title", "score"]
    assert len(found) == 0


def test_a_table_where_a_name_belongs_is_refused_without_what_it_holds(tmp_path: Path) -> None:
    """The message had the first rows, ids of users among them."""
    frame: Any = pd.DataFrame({"user": ["anna", "bert"], "item": ["x", "y"]})
    calls: list[Any] = [
        lambda: fedrec.compare(["fcf"], frame),
        lambda: fedrec.tune("fcf", frame, out=tmp_path / "t"),
        lambda: fedrec.update(tmp_path, frame),
    ]
    for call in calls:
        with pytest.raises(BadInput, match="data of type DataFrame can be given to") as problem:
            call()
        assert "anna" not in str(problem.value)


def test_one_seed_may_be_a_number(tmp_path: Path) -> None:
    """Seed 0 was called none."""
    assert fedrec.compare("popularity", seeds=0, out=tmp_path / "c").seeds == (0,)


def test_a_run_without_a_model_is_said_in_one_line(cli: Cli, caplog: pytest.LogCaptureFixture) -> None:
    """A second line said that this version needs no data, and named no reason."""
    assert cli("run", "fcf", "--rounds", "1", "--no-models", "--out", "r", "--quiet").status == 0
    done = cli("recommend", "r", "--user", "u001")
    assert done.status == 2
    assert done.err == "fedrec: r has no saved model; run it without --no-models\n"
    assert caplog.text == ""
