"""The picture of a reproduction."""

from __future__ import annotations

from dataclasses import replace

import pytest

from fedrec.evaluation.statistics import summarise
from fedrec.recipes import published
from fedrec.report.figures.reproduction import dot_plot
from fedrec.report.model.reproduction import Entry, Line, Panel, Reproduction


def reproduction(*names: str) -> Reproduction:
    table = published.find("fedcia").table("1").chosen([], ["ml-100k"])
    value = table.rows[0].published["ml-100k"][0]
    entries = (Entry(value, summarise([0.1, 0.2]), summarise([0.05, 0.1])),) * len(table.metrics)
    lines = tuple(Line(name, "fedcia", entries) for name in names)
    return Reproduction(table, (Panel(table.columns[0], lines),), (0, 1), 100)


@pytest.mark.parametrize(
    "name", ["MF", "FedCIA (LightGCN) (Collaborative information)", "very many words in its name " * 4]
)
def test_names_stay_on_the_sheet(name: str) -> None:
    done = reproduction("FedMF", name)
    figure = dot_plot(done, done.panels[0])
    assert figure is not None
    figure.draw_without_rendering()
    labels = figure.axes[0].get_yticklabels()
    assert min(label.get_window_extent().x0 for label in labels) >= 0
    assert labels[0].get_text() == "FedMF"


def test_there_is_no_picture_of_nothing() -> None:
    done = reproduction("FedMF")
    line = replace(done.panels[0].lines[0], entries=(Entry(None),) * len(done.table.metrics))
    assert dot_plot(done, replace(done.panels[0], lines=(line,))) is None
