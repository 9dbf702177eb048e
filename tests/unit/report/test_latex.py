"""Tables for a paper: whole LaTeX, the best in bold, and no text from outside that LaTeX would obey."""

from __future__ import annotations

import re

import numpy as np
import pytest
from made_runs import made_run

from fedrec.report.model.comparison import Failure, compare_runs
from fedrec.report.model.leaderboard import Leaderboard
from fedrec.report.model.runs import FinishedRun
from fedrec.report.model.series import series_of
from fedrec.report.text.latex import board_latex, comparison_latex, csv_latex, escaped

HOSTILE = r"\input{/etc/passwd} $x^2$ 50% a_b #1 {~&}"


def compared() -> list[FinishedRun]:
    rng = np.random.default_rng(0)
    levels = {"fcf": 0.4, "fedavg": 0.8, "popularity": 0.3}
    return [made_run(method, seed, rng.random(20) * level) for method, level in levels.items() for seed in (0, 1)]


@pytest.fixture
def table() -> str:
    found = compare_runs(compared(), failures=[Failure("fedmf", 0, HOSTILE)])
    return comparison_latex(found, "fedrec compare fcf\n--out x")


def test_the_table_is_whole(table: str) -> None:
    begun, ended = (re.findall(rf"\\{word}{{(\w+)}}", table) for word in ("begin", "end"))
    assert begun == ["table", "tabular"]
    assert ended == ["tabular", "table"]
    assert [table.count(f"\\{rule}") for rule in ("toprule", "bottomrule")] == [1, 1]
    columns = re.search(r"\\begin{tabular}{(\w+)}", table)
    assert columns is not None
    rows = [line for line in table.splitlines() if line.endswith(r"\\") and "multicolumn" not in line]
    assert {len(re.split(r"(?<!\\)&", row)) for row in rows} == {len(columns[1])}
    assert table.startswith("% fedrec compare fcf --out x\n% needs \\usepackage{booktabs}\n")


def test_the_best_of_a_group_is_bold_and_only_that(table: str) -> None:
    bold = [line.split(" ")[0] for line in table.splitlines() if r"\textbf" in line]
    assert bold == ["fedavg"]


def test_text_from_outside_is_text() -> None:
    plain = escaped(HOSTILE)
    assert "\\input{" not in plain
    assert not re.search(r"(?<!\\)[%#_&$~^]", plain.replace(r"\textasciitilde", "").replace(r"\textasciicircum", ""))
    assert r"a\_b & 1.0000" not in csv_latex("x_y,v\na_b,0.123456\n")
    assert r"a\_b & 0.1235 \\" in csv_latex("x_y,v\na_b,0.123456\n")


def test_a_leaderboard_has_a_table_for_each_metric() -> None:
    board = Leaderboard((compare_runs(compared()),))
    assert board_latex(board).count(r"\begin{table}") == len(board.metrics)


def test_a_method_has_one_colour_everywhere() -> None:
    from matplotlib.colors import to_hex

    from fedrec.report.figures.comparison import curve_plot
    from fedrec.report.page.comparison import comparison_page
    from fedrec.report.page.render import page_style

    levels = {"fcf": 0.4, "fedavg": 0.8, "local": 0.1}
    found = compare_runs([made_run(method, 0, [level], curve=[0.1, level]) for method, level in levels.items()])
    drawn = {one.name: one for one in series_of(found)}
    figure = curve_plot(found)
    assert figure is not None
    lines = {text.get_text(): to_hex(text.get_color()) for text in figure.axes[0].texts}
    page = comparison_page(found)
    for name, one in drawn.items():
        assert lines[name] == one.colour
        variable = one.cls.split()[0]
        assert f"--{variable}: {one.colour};" in page_style()
        assert f'class="{one.cls}"' in page
