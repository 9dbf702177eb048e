"""A comparison as a table on a terminal."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any

from fedrec.report.model.comparison import Cell, Comparison, Group
from fedrec.report.text.shown import shown
from fedrec.report.text.wording import HEADINGS, cell_text, table_groups, title

if TYPE_CHECKING:
    from rich.table import Table
    from rich.text import Text


def bare_table(heading: str) -> Table:
    """An empty table; its margins are tight, because five metrics and the costs must fit into 80 columns."""
    from rich import box
    from rich.table import Table
    from rich.text import Text

    title = Text("\n".join(map(shown, heading.split("\n"))), style="bold")
    return Table(title=title, title_justify="left", box=box.SIMPLE_HEAD, padding=(0, 1, 0, 0), pad_edge=False)


def print_parts(*parts: Table | Text) -> None:
    """Tables and lines of text: within the width of a terminal, elsewhere as wide as they are.

    A table that cannot be as narrow as its terminal is wrapped by it: cut off, 0.1750 would read 0.1.
    """
    from rich.cells import cell_len
    from rich.console import Console
    from rich.text import Text

    console = Console(highlight=False)
    window = console.width
    for part in parts:
        console.width = window
        if isinstance(part, Text):
            console.print(part, soft_wrap=not console.is_terminal)
            continue
        for column in part.columns:
            if column.no_wrap:  # rich measures its longest word
                shown = (cell_len(str(cell)) for cell in (column.header, *column.cells))
                column.min_width = max(column.min_width or 0, *shown)
        needed = console.measure(part, options=console.options.update(width=1000))
        console.width = max(window, needed.minimum) if console.is_terminal else needed.maximum
        console.print(part)


def print_rows(heads: Iterable[str], rows: Iterable[Sequence[str | Text]], **look: Any) -> None:
    """A table with all its lines, printed."""
    from rich.table import Table

    table = Table(*heads, **look)
    for row in rows:
        table.add_row(*row)
    print_parts(table)


def add_group(table: Table, group: Group, rows: Sequence[Sequence[str | Text]]) -> None:
    """The rows of a group under its heading; controls are faint."""
    from rich.text import Text

    table.add_row(Text(HEADINGS[group], style="italic"))
    for row in rows:
        table.add_row(*row, style="dim" if group == "control" else "")
    table.add_section()


def bold_best(cell: Cell | None) -> Text:
    """A cell; the best mean of a group stands out."""
    from rich.text import Text

    return Text(cell_text(cell), style="bold" if cell is not None and cell.best else "")


def terminal_table(comparison: Comparison) -> Table:
    """Methods as rows in groups, metrics and costs as columns; spreads go below means where it is narrow."""
    from rich.text import Text

    table = bare_table(title(comparison))
    table.add_column("method", no_wrap=True)
    for name in comparison.columns:
        table.add_column(name, justify="right", min_width=max(len("0.0000*°"), len(name)))
    table.add_column("sec", justify="right", no_wrap=True)
    table.add_column("KiB up", justify="right", no_wrap=True)
    if comparison.failures:
        table.add_column("failed", max_width=48)
    for group, rows in table_groups(comparison, " {}".format, bold_best, partial(Text, style="red")):
        add_group(table, group, rows)
    return table
