"""A comparison as a Markdown page."""

from __future__ import annotations

from collections.abc import Sequence

from fedrec.report.model.comparison import Cell, Comparison, Row
from fedrec.report.text.wording import (
    HEADINGS,
    cell_text,
    failure_text,
    name_text,
    notes,
    seconds_text,
    title,
    upload_text,
)


def markdown_page(comparison: Comparison, command: str = "", figures: Sequence[tuple[str, str]] = ()) -> str:
    """Table, notes, figures (``(file, what it shows)``) and settings, with the command that made it."""
    parts = [f"# {title(comparison)}"]
    if command:
        parts.append(f"Made by:\n\n```\n{command}\n```")
    if comparison.banner:
        parts.append(f"> **{comparison.banner}.**")
    parts.append(markdown_table(comparison))
    parts.append("\n".join(f"- {_escaped(note)}" for note in notes(comparison)))
    parts += [f"![{_escaped(text)}]({file})" for file, text in figures]
    parts.append("## Settings\n\n" + "\n".join(_settings(row) for row in comparison.rows if row.runs))
    return "\n\n".join(part for part in parts if part) + "\n"


def markdown_table(comparison: Comparison) -> str:
    """The table alone."""
    failed = bool(comparison.failures)
    heads = ["method", *comparison.columns, "seconds a run", "KiB up per client and round", *(["failed"] * failed)]
    lines = [line(heads), line(["---", *["---:"] * (len(comparison.columns) + 2), *["---"] * failed])]
    for group, rows in comparison.grouped():
        lines.append(line([f"*{HEADINGS[group]}*", *[""] * (len(heads) - 1)]))
        lines += [line(_cells(row, comparison, failed)) for row in rows]
    return "\n".join(lines)


def _cells(row: Row, comparison: Comparison, failed: bool) -> list[str]:
    cells = [cell_markdown(row.cells.get(name)) for name in comparison.columns]
    reason = [_escaped(failure_text(row.failures))] if failed else []
    return [_escaped(name_text(row, comparison)), *cells, seconds_text(row), upload_text(row), *reason]


def cell_markdown(cell: Cell | None) -> str:
    """Mean, mark and spread; the best mean of a group stands out."""
    text = _escaped(cell_text(cell)).replace(" ±", " ± ")
    mean, gap, spread = text.partition(" ")
    return f"**{mean}**{gap}{spread}" if cell is not None and cell.best else text


def _settings(row: Row) -> str:
    chosen = row.runs[0].result["settings"]
    own = ", ".join(f"{key}={value}" for key, value in sorted(chosen["settings"].items()))
    rounds = "/".join(dict.fromkeys(str(run.result["rounds"]) for run in row.runs))
    selected = ", ".join(str(run.result["selected_round"]) for run in row.runs)
    text = f"{rounds} round{'' if rounds == '1' else 's'} (selected: {selected})"
    return f"- {row.method}: {text}" + (f"; `{own}`" if own else "")


def line(cells: Sequence[str]) -> str:
    """One line of a table."""
    return "| " + " | ".join(cells) + " |"


def _escaped(text: str) -> str:
    """Text that Markdown would read as a mark-up or as a column, made plain."""
    text = " ".join(text.split())
    for sign in ("\\", "|", "*", "~", "_", "<", "`"):
        text = text.replace(sign, f"\\{sign}")
    return text
