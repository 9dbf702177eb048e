"""A leaderboard on a terminal, as Markdown, as CSV and as JSON: one table a metric."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from fedrec.report.model.comparison import Cell
from fedrec.report.model.leaderboard import Leaderboard, Standing
from fedrec.report.model.mean_ranks import mean_ranks
from fedrec.report.text import markdown
from fedrec.report.text.csv_text import csv_text
from fedrec.report.text.markdown import cell_markdown
from fedrec.report.text.records import as_json
from fedrec.report.text.terminal import add_group, bare_table, bold_best
from fedrec.report.text.wording import HEADINGS, legend, legend_text, lost_texts, pairs_text, rising, seeds_text, tested

if TYPE_CHECKING:
    from rich.table import Table

SCHEMA = "fedrec.leaderboard/1"


def rank_text(standing: Standing) -> str:
    return "-" if math.isinf(standing.rank) else f"{standing.rank:.1f}"


def heading(board: Leaderboard) -> str:
    seeds = sorted({seed for comparison in board.comparisons for seed in comparison.seeds})
    return f"{len(board.names)} data sets under {board.comparisons[0].protocol.name}, {seeds_text(seeds)}"


def terminal_table(board: Leaderboard, metric: str) -> Table:
    """Methods as rows in groups, data sets as columns."""
    table = bare_table(f"{metric}: {heading(board)}")
    table.add_column("method", no_wrap=True)
    for name in board.names:
        table.add_column(name, justify="right")
    table.add_column("rank", justify="right", no_wrap=True)
    for group, standings in board.grouped(metric):
        add_group(table, group, [[" " + one.method, *map(bold_best, one.cells), rank_text(one)] for one in standings])
    return table


def markdown_page(board: Leaderboard, command: str = "", picture: str = "") -> str:
    """A table a metric, the picture of ranks, then what must be known to read them."""
    ranks = [(picture, "Mean ranks over the data sets, and which cannot be told apart")] if picture else []
    tables = [part for metric in board.metrics for part in (f"## {metric}", markdown_table(board, metric))]
    parts = [*tables, *markdown.pictures(ranks), markdown.bullets(reading(board))]
    return markdown.page(f"Leaderboard: {heading(board)}", command, parts)


def markdown_table(board: Leaderboard, metric: str) -> str:
    """One metric on every data set."""
    return markdown.table(["method", *board.names, "rank"], table_groups(board, metric, str, cell_markdown))


def table_groups(
    board: Leaderboard, metric: str, name: Callable[[str], str], cell: Callable[[Cell | None], str]
) -> list[tuple[str, list[list[str]]]]:
    """The rows of a table under the headings of their groups, names and cells written so."""
    return [
        (HEADINGS[group], [[name(one.method), *map(cell, one.cells), rank_text(one)] for one in standings])
        for group, standings in board.grouped(metric)
    ]


def reading(board: Leaderboard) -> list[str]:
    """The marks and tests, once for all data sets, and what is missing."""
    marks = dict.fromkeys(mark for comparison in board.comparisons for mark in legend(comparison))
    found = [legend_text(list(marks)), *dict.fromkeys(tested(comparison) for comparison in board.comparisons)]
    found.append("rank: mean place within its group over the data sets where it has a result.")
    ranks = mean_ranks(board, board.comparisons[0].main)
    if ranks is not None:
        found.append(
            f"{ranks.metric}, all {len(ranks.methods)} methods that have a result everywhere: Friedman's test over "
            f"{ranks.cases} data sets gives p = {ranks.p:.2g}; two mean ranks differ at 5 % where they are "
            f"{ranks.difference:.1f} apart (Nemenyi)."
        )
    named = list(zip(board.names, board.comparisons, strict=True))
    found += [f"{name}: {one.banner}." for name, one in named if one.banner]
    found += [f"{name}: {text}" for name, one in named if (text := pairs_text(one))]
    found += [f"{name}: {text}" for name, one in named if (text := rising(one))]
    found += [f"{name}: {text}" for name, one in named for text in lost_texts(one.failures)]
    return [text for text in found if text]


def as_csv(board: Leaderboard) -> str:
    """One line a method, data set and metric."""
    rows = []
    for metric in board.metrics:
        for standing in board.standings(metric):
            for name, cell in zip(board.names, standing.cells, strict=True):
                if cell is not None and not math.isnan(cell.summary.mean):
                    spread = "" if math.isnan(cell.summary.spread) else cell.summary.spread
                    numbers = [cell.summary.mean, spread, cell.summary.count, cell.mark]
                    rows.append([metric, standing.group, standing.method, name, *numbers])
    return csv_text(["metric", "group", "method", "data", "mean", "spread", "seeds", "mark"], rows)


def board_json(board: Leaderboard, command: str = "") -> dict[str, Any]:
    """The object that ``fedrec compare --json`` writes for several data sets."""
    return {
        "schema": SCHEMA,
        "command": command,
        "metrics": board.metrics,
        "comparisons": [as_json(comparison, command) for comparison in board.comparisons],
    }
