"""Mean ranks over data sets, against values by hand, Demšar's table and scipy."""

from __future__ import annotations

import numpy as np
import pytest
from made_runs import made_run
from scipy.stats import friedmanchisquare

from fedrec.report.figures.mean_ranks import rank_plot
from fedrec.report.model.comparison import compare_runs
from fedrec.report.model.leaderboard import Leaderboard
from fedrec.report.model.mean_ranks import MeanRanks, friedman, nemenyi
from fedrec.report.page.figures import ranks_figure


def test_ranks_by_hand() -> None:
    # three methods on two data sets; the last two are level on the second
    ranks, _ = friedman(np.array([[0.9, 0.5], [0.8, 0.4], [0.7, 0.4]]))
    assert ranks.tolist() == [1.0, 2.25, 2.75]


def test_methods_that_are_level_share_their_places_on_the_board() -> None:
    """The one that came first in the file had the better rank."""
    levels = {"fcf": 0.4, "fedavg": 0.4, "fedmf": 0.2, "pfedrec": 0.9}
    board = Leaderboard((compare_runs([made_run(name, 0, [level, level]) for name, level in levels.items()]),))
    ranks = {one.method: one.rank for one in board.standings("HR@10")}
    assert ranks == {"pfedrec": 1.0, "fcf": 2.5, "fedavg": 2.5, "fedmf": 4.0}


@pytest.mark.parametrize("rounded", [False, True], ids=["no ties", "ties"])
def test_friedmans_test_is_scipys(rounded: bool) -> None:
    values = np.random.default_rng(0).random((5, 7))
    values = np.round(values, 1) if rounded else values
    assert friedman(values)[1] == pytest.approx(friedmanchisquare(*values).pvalue)


def test_equal_methods_differ_in_nothing() -> None:
    assert friedman(np.ones((4, 3)))[1] == 1.0


@pytest.mark.parametrize(("methods", "q"), [(2, 1.960), (4, 2.569), (10, 3.164)])
def test_critical_values_are_those_of_demsars_table(methods: int, q: float) -> None:
    assert nemenyi(methods, 6) == pytest.approx(q * (methods * (methods + 1) / 36) ** 0.5, abs=2e-3)


def test_bars_join_the_largest_groups() -> None:
    found = MeanRanks("NDCG@10", ("a", "b", "c", "d"), (1.0, 1.8, 2.9, 4.0), 6, 1.5, 0.01)
    assert found.groups == [(0, 1), (1, 2), (2, 3)]
    near = MeanRanks("NDCG@10", ("a", "b", "c"), (1.5, 2.0, 2.5), 6, 3.0, 0.9)
    assert near.groups == [(0, 2)]
    apart = MeanRanks("NDCG@10", ("a", "b"), (1.0, 3.0), 6, 1.0, 0.01)
    assert apart.groups == []


def test_every_method_is_named_in_the_picture() -> None:
    names = tuple(f"method{place}" for place in range(7))
    figure = rank_plot(MeanRanks("NDCG@10", names, tuple(float(p) for p in range(1, 8)), 6, 2.5, 0.001))
    said = " ".join(text.get_text() for axes in figure.axes for text in axes.texts)
    assert all(name in said for name in names)


def test_numbers_on_the_line_leave_room_for_each_other() -> None:
    many = tuple(f"m{place}" for place in range(60))
    figure = rank_plot(MeanRanks("NDCG@10", many, tuple(float(p) for p in range(1, 61)), 6, 2.5, 0.001))
    numbers = [text for axes in figure.axes for text in axes.texts if text.get_text().isdecimal()]
    assert 10 < len(numbers) <= 17


def test_the_page_draws_names_bars_and_ranks() -> None:
    names = tuple(f"method{place}" for place in range(7))
    found = MeanRanks("NDCG@10", names, tuple(float(p) for p in range(1, 8)), 6, 2.5, 0.001)
    drawn = ranks_figure(found)
    assert drawn.count('class="alike"') == 2 * len(found.groups)  # wide and narrow
    assert all(f"{name}  {rank:.1f}" in drawn or f"{rank:.1f}  {name}" in drawn
               for name, rank in zip(names, found.ranks, strict=True))  # fmt: skip
    assert "nearer than 2.5" in drawn
