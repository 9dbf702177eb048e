"""A browser, and the pages that it is shown."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

sys.path.insert(0, str(Path(__file__).parent.parent / "unit" / "report"))  # finished runs made up in memory

from made_runs import made_run

from fedrec.recipes import published
from fedrec.report.model.comparison import Failure, compare_runs
from fedrec.report.model.reproduction import Panel, Reproduction, line_of
from fedrec.report.model.runs import FinishedRun
from fedrec.report.page.comparison import comparison_page
from fedrec.report.page.reproduction import reproduction_page
from webdriver import Browser, programs


@pytest.fixture(scope="module")
def browser(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Browser]:
    if programs() is None:
        pytest.skip("no Chromium with its driver is installed (Debian: apt-get install chromium chromium-driver)")
    try:
        opened = Browser(tmp_path_factory.mktemp("profile"))
    except (RuntimeError, TimeoutError) as problem:
        pytest.skip(f"Chromium does not start here: {problem}")
    yield opened
    opened.close()


def runs(method: str, level: float, protocol: str = "strict", seeds: tuple[int, ...] = (0, 1)) -> list[FinishedRun]:
    rng = np.random.default_rng(len(method))
    found = []
    for seed in seeds:
        values = np.clip(level + 0.2 * rng.normal(size=60), 0, 1) * (rng.random(60) < 0.6)
        curve = [] if method in ("ease", "popularity", "random") else list(level * (1 - np.exp(-np.arange(1, 31) / 8)))
        found.append(made_run(method, seed, values, protocol=protocol, curve=curve))
    return found


@pytest.fixture(scope="module")
def comparison_file(tmp_path_factory: pytest.TempPathFactory) -> Path:
    levels = {"fedavg": 0.3, "fcf": 0.25, "fedca": 0.4, "ease": 0.5, "popularity": 0.28, "local": 0.1, "random": 0.05}
    every = [run for method, level in levels.items() for run in runs(method, level)]
    lost = [
        Failure("fedmf", 0, "FloatingPointError: <script>alert(1)</script> & no more"),
        Failure("fcf", 1, "OSError: " + "a/long_place" * 9),
    ]
    found = compare_runs(every, failures=lost, chance={"HR@10/99": 0.1, "NDCG@10": 0.03})
    path = tmp_path_factory.mktemp("page") / "compare.html"
    path.write_text(comparison_page(found, "fedrec compare fedavg fcf"), encoding="utf-8")
    return path


@pytest.fixture(scope="module")
def reproduction_file(tmp_path_factory: pytest.TempPathFactory) -> Path:
    table = published.find("fedca").table("2").chosen(["pmf"], ["ml-100k"])
    column = table.columns[0]
    lines = []
    for row in table.rows:
        value = row.published[column.key][0]
        assert value is not None
        level = 0.8 * float(value.number)
        ours, strict = runs(row.method, level, "paper-fedca"), runs(row.method, level / 2)
        lines.append(line_of(row, table, column, ours, strict))
    lines[0] = replace(lines[0], name="FedCIA (LightGCN) (Collaborative information)")  # the longest of all tables
    lines[1] = replace(lines[1], name="A method of one's own, " + "with very many words in its name " * 4)
    for name in ("random", "popularity", "local"):
        row = published.TableRow(name, name, {})
        lines.append(line_of(row, table, column, runs(name, 0.3, "paper-fedca"), runs(name, 0.1), control=True))
    panel = Panel(column, tuple(lines), banner="LEAK: made up for a test", chance={"HR@10/99": 0.1})
    path = tmp_path_factory.mktemp("page") / "table2.html"
    done = Reproduction(table, (panel,), (0, 1), 100)
    path.write_text(reproduction_page(done, "fedrec reproduce fedca --table 2"), encoding="utf-8")
    return path
