"""Markdown: the pieces of every page, and the page of a comparison."""

from __future__ import annotations

from collections.abc import Container, Iterable, Sequence

from fedrec.report.model.comparison import Cell, Comparison, Row
from fedrec.report.text.wording import HEADINGS, cell_text, notes, settings_text, table_groups, title


def page(heading: str, command: str, parts: Iterable[str]) -> str:
    """A heading, the command that made the page, and its parts but for empty ones."""
    made = f"Made by:\n\n```\n{command}\n```" if command else ""
    return "\n\n".join(part for part in (f"# {heading}", made, *parts) if part) + "\n"


def table(
    heads: Sequence[str], groups: Iterable[tuple[str, Iterable[Sequence[str]]]], words: Container[int] = (0,)
) -> str:
    """A table; a group of rows may have a heading. ``words``: the places of columns that are no numbers."""
    lines = [heads, ["---" if place in words else "---:" for place in range(len(heads))]]
    for name, rows in groups:
        lines += [[f"*{name}*", *[""] * (len(heads) - 1)]] * bool(name)
        lines += rows
    return "\n".join("| " + " | ".join(cells) + " |" for cells in lines)


def bullets(texts: Iterable[str]) -> str:
    return "\n".join(f"- {text}" for text in texts)


def pictures(figures: Iterable[tuple[str, str]]) -> list[str]:
    """Figures as ``(file, what it shows)``."""
    return [f"![{escaped(text)}]({file})" for file, text in figures]


def escaped(text: str, signs: str = "\\|*~_<`") -> str:
    """Text that Markdown would read as a mark-up or as a column, made plain."""
    return "".join(f"\\{sign}" if sign in signs else sign for sign in " ".join(text.split()))


def markdown_page(comparison: Comparison, command: str = "", figures: Sequence[tuple[str, str]] = ()) -> str:
    """Table, notes, figures and settings, with the command that made it."""
    return page(title(comparison), command, [
        f"> **{comparison.banner}.**" if comparison.banner else "",
        markdown_table(comparison),
        bullets(map(escaped, notes(comparison))),
        *pictures(figures),
        "## Settings\n\n" + "\n".join(_settings(row) for row in comparison.rows if row.runs),
    ])  # fmt: skip


def markdown_table(comparison: Comparison) -> str:
    """The table alone."""
    heads = ["method", *comparison.columns, "seconds a run", "KiB up per client and round"]
    heads += ["failed"] * bool(comparison.failures)
    groups = table_groups(comparison, escaped, cell_markdown, escaped)
    return table(heads, [(HEADINGS[group], rows) for group, rows in groups], (0, len(comparison.columns) + 3))


def cell_markdown(cell: Cell | None) -> str:
    """Mean, mark and spread; the best mean of a group stands out."""
    text = escaped(cell_text(cell)).replace(" ±", " ± ")
    mean, gap, spread = text.partition(" ")
    return f"**{mean}**{gap}{spread}" if cell is not None and cell.best else text


def _settings(row: Row) -> str:
    own = settings_text(row.runs[0].result["settings"]["settings"])
    rounds = "/".join(dict.fromkeys(str(run.result["rounds"]) for run in row.runs))
    selected = ", ".join(str(run.result["selected_round"]) for run in row.runs)
    text = f"{rounds} round{'' if rounds == '1' else 's'} (selected: {selected})"
    return f"- {row.method}: {text}" + (f"; `{own}`" if own else "")
