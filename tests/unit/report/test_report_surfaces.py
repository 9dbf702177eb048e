"""The same comparison as text, Markdown, CSV, JSON and figures."""

from __future__ import annotations

import csv
import io
import json
from itertools import pairwise
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from made_runs import made_run

from fedrec.report.figures.canvas import spread_out
from fedrec.report.figures.comparison import curve_plot, dot_plot
from fedrec.report.figures.files import save
from fedrec.report.model.comparison import Comparison, Failure, compare_runs
from fedrec.report.text.markdown import markdown_page, markdown_table
from fedrec.report.text.records import as_csv, as_json
from fedrec.report.text.terminal import terminal_table
from fedrec.report.text.wording import failure_text, notes

USERS = 40


def values(share: float) -> np.ndarray:
    return (np.arange(USERS) < share * USERS).astype(float)


@pytest.fixture(scope="module")
def found() -> Comparison:
    shares = {"random": 0.1, "popularity": 0.3, "local": 0.6, "fedavg": 0.5, "fcf": 0.3, "ease": 0.8}
    runs = [
        made_run(
            name,
            seed,
            values(share),
            protocol="paper-fedca",
            curve=[0.1, 0.2, share] if name in ("local", "fedavg", "fcf") else (),
        )
        for name, share in shares.items()
        for seed in (0, 1)
    ]
    failures = [Failure("fedncf", 0, "a | b"), Failure("fedncf", 1, "a | b")]
    return compare_runs(runs, failures=failures, chance={"HR@10/99": 0.1})


def rendered(comparison: Comparison, width: int) -> str:
    from rich.console import Console

    stream = io.StringIO()
    Console(file=stream, width=width).print(terminal_table(comparison))
    return stream.getvalue()


def test_terminal_table_names_all_methods_and_reasons(found: Comparison) -> None:
    text = rendered(found, 200)
    for word in ("federated", "centralised", "controls", "fedavg", "ease", "local", "HR@10/99", "a | b"):
        assert word in text
    assert "0.5000*" in text


def test_narrow_terminal_loses_no_number(found: Comparison) -> None:
    text = rendered(found, 80)
    assert text.count("0.5000*") == len(found.columns)
    assert text.count("±0.0000") >= len(found.columns)
    assert max(map(len, text.splitlines())) <= 80


def test_notes_say_test_chance_and_flaws(found: Comparison) -> None:
    text = " ".join(notes(found))
    assert "paired permutation test over users" in text
    assert "fewer than 3 seeds" in text
    assert "HR@10/99 0.1000" in text
    assert all(flaw in text for flaw in found.protocol.flaws)
    assert "t-test" not in text  # two seeds: none was made


def test_notes_name_methods_that_were_best_in_their_last_round(found: Comparison) -> None:
    note = next(note for note in notes(found) if note.startswith("Best in the last"))
    assert note.endswith("help: fedavg, fcf.")  # not local, a control; not ease, which has one round
    still = [made_run("fedavg", seed, values(0.5), curve=[0.1, 0.3, 0.2]) for seed in (0, 1)]
    assert not any(note.startswith("Best in the last") for note in notes(compare_runs(still)))


def test_notes_warn_when_the_canary_is_missing() -> None:
    assert any("`local`" in note for note in notes(compare_runs([made_run("ease", 0, values(0.5))])))


def test_markdown_is_one_rectangular_table(found: Comparison) -> None:
    lines = markdown_table(found).splitlines()
    assert len({line.replace("\\|", "").count("|") for line in lines}) == 1
    assert "**0.5000\\***" in "".join(lines)


def test_markdown_page_has_command_banner_and_figures(found: Comparison) -> None:
    page = markdown_page(found, "fedrec compare fcf fedavg", [("compare.png", "the figure")])
    assert "```\nfedrec compare fcf fedavg\n```" in page
    assert "> **LEAK" in page
    assert "![the figure](compare.png)" in page
    assert "`dim=4`" in page


def test_csv_reads_back(found: Comparison) -> None:
    rows = {row["method"]: row for row in csv.DictReader(io.StringIO(as_csv(found)))}
    assert float(rows["fedavg"]["HR@10 mean"]) == 0.5
    assert float(rows["fedavg"]["upload_bytes"]) == 2048.0
    assert rows["fedncf"]["HR@10 mean"] == ""
    assert "a | b" in rows["fedncf"]["failed"]
    assert rows["local"]["group"] == "control"


def test_json_is_strict_and_complete(found: Comparison) -> None:
    text = json.dumps(as_json(found, "fedrec compare x"), allow_nan=False)
    content = json.loads(text)
    assert content["schema"] == "fedrec.compare/1"
    row = next(row for row in content["rows"] if row["method"] == "fedavg")
    assert row["mean"]["HR@10"] == 0.5
    assert row["values"]["HR@10"] == [0.5, 0.5]
    assert row["seeds"] == [0, 1]
    assert row["settings"]["settings"] == {"dim": 4}
    assert row["significance"]["HR@10"]["against_best"]["against"] == "fcf"
    assert content["leak"].startswith("LEAK")
    failed = next(row for row in content["rows"] if row["method"] == "fedncf")
    assert failed["failures"] == [{"seed": 0, "reason": "a | b"}, {"seed": 1, "reason": "a | b"}]


def test_one_seed_has_no_spread() -> None:
    content = as_json(compare_runs([made_run("ease", 7, values(0.5))]))
    assert content["rows"][0]["spread"]["HR@10"] is None


def test_a_reason_stands_once_with_its_seeds() -> None:
    text = failure_text((Failure("a", 0, "x"), Failure("a", 1, "y"), Failure("a", 2, "x")))
    assert text == "seeds 0, 2: x; seed 1: y"


def test_dot_plot_orders_methods_and_draws_the_lines(found: Comparison) -> None:
    axes = dot_plot(found).axes[0]
    names = [label.get_text() for label in axes.get_yticklabels()]
    assert names[-1] == "ease"  # the best is on top
    assert names[0] == "random"
    assert "fedncf" not in names  # it has no value
    assert {"chance", "popularity"} <= {text.get_text() for text in axes.texts}


def test_curves_only_where_there_are_rounds(found: Comparison) -> None:
    figure = curve_plot(found)
    assert figure is not None
    axes = figure.axes[0]
    assert {text.get_text() for text in axes.texts} >= {"fedavg", "fcf", "local", "ease"}
    assert curve_plot(compare_runs([made_run("ease", 0, values(0.5))])) is None


def test_same_figure_same_bytes(found: Comparison, tmp_path: Path) -> None:
    for name in ("a.png", "b.png"):
        save(dot_plot(found), tmp_path / name)
    assert (tmp_path / "a.png").read_bytes() == (tmp_path / "b.png").read_bytes()


@given(st.lists(st.floats(0, 1), max_size=20).map(sorted), st.floats(0.001, 0.2))
def test_spread_out_keeps_order_distance_and_centre(places: list[float], least: float) -> None:
    moved = spread_out(places, least)
    assert len(moved) == len(places)
    assert all(b - a >= least - 1e-9 for a, b in pairwise(moved))
    assert sum(moved) == pytest.approx(sum(places))


@pytest.mark.parametrize("name", ["fedavg:lr=0.1", "fedca:train_from=average,alpha=auto,beta=auto,averaged=rows"])
def test_long_names_stay_on_the_sheet(name: str) -> None:
    runs = [made_run(one, 0, values(0.5), curve=[0.1, 0.4]) for one in ("fcf", name)]
    figures = [curve_plot(compare_runs(runs)), dot_plot(compare_runs(runs))]
    for figure in figures:
        assert figure is not None
        sheet = figure.bbox
        axes = figure.axes[0]
        for text in [*axes.texts, *axes.get_yticklabels()]:
            extent = text.get_window_extent()
            assert extent.x0 >= sheet.x0
            assert extent.x1 <= sheet.x1, text.get_text()
