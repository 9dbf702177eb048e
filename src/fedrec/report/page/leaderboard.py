"""The page of ``fedrec compare`` on several data sets."""

from __future__ import annotations

import math
from html import escape

from fedrec.report.model.leaderboard import Leaderboard
from fedrec.report.model.mean_ranks import mean_ranks
from fedrec.report.page.comparison import failures_html, group_tag, protocol_html, value_cell
from fedrec.report.page.figures import ranks_figure
from fedrec.report.page.parts import HtmlTable, Section, Td, Th, banner, join, listed, paragraphs
from fedrec.report.page.render import Page, render
from fedrec.report.text.leaderboard import heading, rank_text, reading
from fedrec.report.text.wording import title


def leaderboard_page(board: Leaderboard, command: str = "") -> str:
    """One self-contained HTML file; each data set has a page of its own beside it."""
    sections = [
        Section(f"metric-{place}", metric, _table(board, metric)) for place, metric in enumerate(board.metrics, 1)
    ]
    ranks = mean_ranks(board, board.comparisons[0].main)
    if ranks is not None:
        sections.append(Section("ranks", "Mean ranks", ranks_figure(ranks)))
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
