"""Methods over several data sets: one table a metric, made from the comparison on each data set."""

from __future__ import annotations

import math
from dataclasses import dataclass
from html import escape
from typing import TYPE_CHECKING, Any

from fedrec.report.comparison import GROUPS, Cell, Comparison, Group
from fedrec.report.csv_text import csv_text
from fedrec.report.markdown import cell_markdown, line
from fedrec.report.page import HtmlTable, Page, Section, Td, Th, banner, join, listed, paragraphs, render
from fedrec.report.page_comparison import failures_html, group_tag, protocol_html, value_cell
from fedrec.report.records import as_json
from fedrec.report.terminal import bare_table
from fedrec.report.wording import HEADINGS, cell_text, legend, legend_text, lost_texts, rising, tested, title

if TYPE_CHECKING:
    from rich.table import Table

SCHEMA = "fedrec.leaderboard/1"


@dataclass(frozen=True)
class Standing:
    """A method's place on every data set."""

    method: str
    group: Group
    cells: tuple[Cell | None, ...]
    """One a data set; None where it has no result."""
    rank: float
    """Mean rank within its group over the data sets where it has a result; 1 is best everywhere."""


@dataclass(frozen=True)
class Leaderboard:
    """The same methods under the same protocol on several data sets."""

    comparisons: tuple[Comparison, ...]

    @property
    def names(self) -> list[str]:
        return [str(comparison.data["name"]) for comparison in self.comparisons]

    @property
    def metrics(self) -> list[str]:
        """What is shown: the metric that the round is chosen by, and the table's first one."""
        first = self.comparisons[0]
        return list(dict.fromkeys([first.columns[0], first.main]))

    def standings(self, metric: str) -> list[Standing]:
        """By group, and within a group by mean rank."""
        found: list[Standing] = []
        methods = dict.fromkeys(row.method for comparison in self.comparisons for row in comparison.rows)
        groups = {row.method: row.group for comparison in self.comparisons for row in comparison.rows}
        ranks = [_ranks(comparison, metric) for comparison in self.comparisons]
        for method in methods:
            rows = [comparison.row(method) for comparison in self.comparisons]
            cells = tuple(None if row is None else row.cells.get(metric) for row in rows)
            own = [rank[method] for rank in ranks if method in rank]
            found.append(Standing(method, groups[method], cells, sum(own) / len(own) if own else math.inf))
        return sorted(found, key=lambda standing: (GROUPS.index(standing.group), standing.rank))


def _ranks(comparison: Comparison, metric: str) -> dict[str, float]:
    found: dict[str, float] = {}
    for _, rows in comparison.grouped():
        means = {row.method: row.cells[metric].summary.mean for row in rows if metric in row.cells}
        order = sorted((name for name in means if not math.isnan(means[name])), key=lambda name: -means[name])
        found |= {name: float(place) for place, name in enumerate(order, 1)}
    return found


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


def markdown_page(board: Leaderboard, command: str = "") -> str:
    """A table a metric, then what must be known to read them."""
    parts = [f"# Leaderboard: {heading(board)}"]
    if command:
        parts.append(f"Made by:\n\n```\n{command}\n```")
    for metric in board.metrics:
        parts.append(f"## {metric}\n\n" + markdown_table(board, metric))
    parts.append("\n".join(f"- {note}" for note in reading(board)))
    return "\n\n".join(parts) + "\n"


def markdown_table(board: Leaderboard, metric: str) -> str:
    """One metric on every data set."""
    lines = [
        line(["method", *board.names, "rank"]),
        line(["---", *["---:"] * (len(board.names) + 1)]),
    ]
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


def leaderboard_page(board: Leaderboard, command: str = "") -> str:
    """One self-contained HTML file; each data set has a page of its own beside it."""
    sections = [
        Section(f"metric-{place}", metric, _table(board, metric)) for place, metric in enumerate(board.metrics, 1)
    ]
    protocol = board.comparisons[0].protocol
    pages = [f"{name}: {title(c)}" for name, c in zip(board.names, board.comparisons, strict=True)]
    sections += [
        Section("reading", "How to read it", paragraphs(reading(board))),
        Section("data", "Data sets", listed(pages)),
        Section("protocol", f"Protocol {protocol.name}", protocol_html(protocol), "Protocol"),
    ]
    if command:
        sections.append(Section("command", "Exact command", f"<pre>{escape(command)}</pre>", "Command"))
    opening = join([banner(c.banner) + failures_html(c.failures) for c in board.comparisons if c.banner or c.failures])
    return render(Page(f"Leaderboard under {protocol.name}", heading(board), sections, opening))


def _table(board: Leaderboard, metric: str) -> str:
    heads = [Th("method", number=False), *(Th(name) for name in board.names), Th("rank", about="mean place")]
    rows = []
    for standing in board.standings(metric):
        first = Td(escape(standing.method) + group_tag(standing.group))
        last = Td(rank_text(standing), None if math.isinf(standing.rank) else standing.rank)
        cells = [first, *(value_cell(cell) for cell in standing.cells), last]
        rows.append(("control" if standing.group == "control" else "", cells))
    return HtmlTable(f"{metric} on the test items; a click on a heading sorts.", heads, rows).html()
