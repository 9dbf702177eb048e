"""A leaderboard on a terminal, as Markdown, as CSV and as JSON: one table a metric."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

from fedrec.report.model.leaderboard import Leaderboard, Standing
from fedrec.report.model.mean_ranks import mean_ranks
from fedrec.report.text.csv_text import csv_text
from fedrec.report.text.markdown import cell_markdown, line
from fedrec.report.text.records import as_json
from fedrec.report.text.terminal import bare_table
from fedrec.report.text.wording import HEADINGS, cell_text, legend, legend_text, lost_texts, rising, tested

if TYPE_CHECKING:
    from rich.table import Table

SCHEMA = "fedrec.leaderboard/1"


def rank_text(standing: Standing) -> str:
    return "-" if math.isinf(standing.rank) else f"{standing.rank:.1f}"


def heading(board: Leaderboard) -> str:
    seeds = sorted({seed for comparison in board.comparisons for seed in comparison.seeds})
    listed_seeds = ", ".join(map(str, seeds))
    return (
        f"{len(board.names)} data sets under {board.comparisons[0].protocol.name}, "
        f"seed{'s' if len(seeds) > 1 else ''} {listed_seeds}"
    )


def terminal_table(board: Leaderboard, metric: str) -> Table:
    """Methods as rows in groups, data sets as columns."""
    from rich.text import Text

    table = bare_table(f"{metric}: {heading(board)}")
    table.add_column("method", no_wrap=True)
    for name in board.names:
        table.add_column(name, justify="right")
    table.add_column("rank", justify="right", no_wrap=True)
    last: str | None = None
    for standing in board.standings(metric):
        if standing.group != last:
            table.add_section()
            table.add_row(Text(HEADINGS[standing.group], style="italic"))
            last = standing.group
        cells = [Text(cell_text(cell), style="bold" if cell and cell.best else "") for cell in standing.cells]
        table.add_row(
            " " + standing.method, *cells, rank_text(standing), style="dim" if standing.group == "control" else ""
        )
    return table


def markdown_page(board: Leaderboard, command: str = "", picture: str = "") -> str:
    """A table a metric, the picture of ranks, then what must be known to read them."""
    parts = [f"# Leaderboard: {heading(board)}"]
    if command:
        parts.append(f"Made by:\n\n```\n{command}\n```")
    for metric in board.metrics:
        parts.append(f"## {metric}\n\n" + markdown_table(board, metric))
    if picture:
        parts.append(f"![Mean ranks over the data sets, and which cannot be told apart]({picture})")
    parts.append("\n".join(f"- {note}" for note in reading(board)))
    return "\n\n".join(parts) + "\n"


def markdown_table(board: Leaderboard, metric: str) -> str:
    """One metric on every data set."""
    lines = [line(["method", *board.names, "rank"]), line(["---", *["---:"] * (len(board.names) + 1)])]
    last: str | None = None
    for standing in board.standings(metric):
        if standing.group != last:
            lines.append(line([f"*{HEADINGS[standing.group]}*", *[""] * (len(board.names) + 1)]))
            last = standing.group
        lines.append(line([standing.method, *map(cell_markdown, standing.cells), rank_text(standing)]))
    return "\n".join(lines)


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
    found = [text for text in found if text]
    found += [
        f"{comparison.data['name']}: {comparison.banner}." for comparison in board.comparisons if comparison.banner
    ]
    found += [f"{comparison.data['name']}: {text}" for comparison in board.comparisons if (text := rising(comparison))]
    for comparison in board.comparisons:
        found += [f"{comparison.data['name']}: {text}" for text in lost_texts(comparison.failures)]
    return found


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
