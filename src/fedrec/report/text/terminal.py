"""A comparison as a table on a terminal."""

from __future__ import annotations

from typing import TYPE_CHECKING

from fedrec.report.model.comparison import Comparison
from fedrec.report.text.wording import HEADINGS, cell_text, failure_text, name_text, seconds_text, title, upload_text

if TYPE_CHECKING:
    from rich.console import Console
    from rich.table import Table


def bare_table(heading: str) -> Table:
    """An empty table; its margins are tight, because five metrics and the costs must fit into 80 columns."""
    from rich import box
    from rich.table import Table
    from rich.text import Text

    title = Text(heading, style="bold")
    return Table(title=title, title_justify="left", box=box.SIMPLE_HEAD, padding=(0, 1, 0, 0), pad_edge=False)


def print_table(console: Console, table: Table) -> None:
    """Within the width of a terminal; elsewhere as wide as the table is."""
    if not console.is_terminal:
        console.width = console.measure(table, options=console.options.update(width=1000)).maximum
    console.print(table)


def terminal_table(comparison: Comparison) -> Table:
    """Methods as rows in groups, metrics and costs as columns; spreads go below means where it is narrow."""
    from rich.text import Text

    table = bare_table(title(comparison))
    table.add_column("method", no_wrap=True)
    for name in comparison.columns:
        table.add_column(name, justify="right", min_width=max(len("0.0000*°"), len(name)))
    table.add_column("sec", justify="right", no_wrap=True)
    table.add_column("KiB up", justify="right", no_wrap=True)
    failed = bool(comparison.failures)
    if failed:
        table.add_column("failed", max_width=48)
    for group, rows in comparison.grouped():
        table.add_row(Text(HEADINGS[group], style="italic"))
        for row in rows:
            cells = [
                Text(cell_text(row.cells.get(name)), style="bold" if name in row.cells and row.cells[name].best else "")
                for name in comparison.columns
            ]
            reason = [Text(failure_text(row.failures), style="red")] if failed else []
            style = "dim" if row.control else ""
            table.add_row(
                " " + name_text(row, comparison), *cells, seconds_text(row), upload_text(row), *reason, style=style
            )
        table.add_section()
    return table
