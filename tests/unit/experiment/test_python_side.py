"""What Python and a notebook show of a result."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

import fedrec
from command_line import Cli


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


def test_the_package_can_be_run_as_a_module() -> None:
    done = subprocess.run([sys.executable, "-m", "fedrec", "--version"], capture_output=True, text=True, check=True)
    assert done.stdout.startswith("fedrec ")


def test_an_interrupt_says_how_to_go_on(cli: Cli, monkeypatch: pytest.MonkeyPatch) -> None:
    from fedrec.experiment import run as running

    def stop(settings: object, folder: Path, *_: object) -> None:
        folder.mkdir(parents=True)
        raise KeyboardInterrupt

    monkeypatch.setattr(running, "execute", stop)
    done = cli("run", "fcf", "--out", "my run")
    assert done.status == 130
    assert "`fedrec run --resume 'my run'` goes on" in done.err


def test_shells_can_complete(cli: Cli) -> None:
    assert "--show-completion" in cli("--help").out
