"""A reproduction on a terminal, as Markdown and as CSV."""

from __future__ import annotations

import math
from collections.abc import Sequence
from decimal import ROUND_HALF_UP, Decimal
from typing import TYPE_CHECKING, Any

from fedrec.evaluation.statistics import Summary
from fedrec.report.model.reproduction import SCHEMA, Entry, Line, Panel, Reproduction, heading, remarks, strict_name
from fedrec.report.text import markdown
from fedrec.report.text.csv_text import csv_text
from fedrec.report.text.terminal import bare_table

if TYPE_CHECKING:
    from rich.table import Table

AT_ONCE = 2  # metrics beside one another on a terminal


def published_text(entry: Entry) -> str:
    """As the paper prints it; percentages as fractions."""
    if entry.published is None:
        return ""
    spread = entry.published.spread
    return f"{entry.published.number}" + (f" ±{spread}" if spread is not None else "")


def summary_text(summary: Summary | None, digits: int = 4) -> str:
    """Mean and, with several seeds, spread, with as many digits as the paper has; halves are rounded up."""
    if summary is None or math.isnan(summary.mean):
        return "-"
    spread = f" ±{_rounded(summary.spread, digits)}" if summary.count > 1 else ""
    return f"{_rounded(summary.mean, digits)}{spread}"


def _rounded(value: float, digits: int) -> str:
    return str(Decimal(repr(value)).quantize(Decimal(1).scaleb(-digits), ROUND_HALF_UP))


def digits_of(entry: Entry) -> int:
    return entry.published.digits if entry.published is not None else 4


def difference_text(entry: Entry) -> str:
    """``+1.3 %``; ``0`` where both are the same to the last printed digit."""
    if entry.difference is None or entry.ours is None or entry.published is None:
        return "-" if entry.published is not None else ""
    if _rounded(entry.ours.mean, digits_of(entry)) == str(entry.published.number):
        return "0"
    precision = 1 if abs(entry.difference) >= 0.1 else 2
    return f"{entry.difference:+.{precision}f} %"


def heads_of(reproduction: Reproduction, part: slice = slice(None)) -> list[str]:
    """The row and, of (some) metrics: published, ours, off and, but for bytes, strict."""
    strict = ["strict"] * (reproduction.table.kind != "bytes")
    metrics = reproduction.table.metrics[part]
    return ["row", *(head for metric in metrics for head in (f"{metric} published", "ours", "off", *strict))]


def line_texts(line: Line, reproduction: Reproduction, part: slice = slice(None)) -> list[str]:
    """What stands under those heads."""
    found = [name_of(line)]
    for entry in line.entries[part]:
        digits = digits_of(entry)
        found += [published_text(entry), summary_text(entry.ours, digits), difference_text(entry)]
        found += [summary_text(entry.strict, digits)] * (reproduction.table.kind != "bytes")
    return found


def line_note(line: Line) -> str:
    """Why a line lacks values."""
    if line.absent:
        return line.absent
    return f"failed: {len(line.failures)} run{'s' if len(line.failures) > 1 else ''}" if line.failures else ""


def name_of(line: Line) -> str:
    return f"control: {line.name}" if line.control else line.name


def terminal_tables(reproduction: Reproduction) -> list[tuple[str | None, Table]]:
    """A leak banner, where there is one, and a table for every data set and two metrics."""
    found: list[tuple[str | None, Table]] = []
    for panel in reproduction.panels:
        for first in range(0, len(reproduction.table.metrics), AT_ONCE):
            part = slice(first, first + AT_ONCE)
            table = bare_table(panel.column.label)
            for place, head in enumerate(heads_of(reproduction, part)):
                table.add_column(head, justify="right" if place else "left", no_wrap=place == 0)
            if _noted(panel):
                table.add_column("", style="yellow")
            for line in panel.lines:
                note = [line_note(line)] * _noted(panel)
                table.add_row(*line_texts(line, reproduction, part), *note, style="dim" if line.control else "")
            found.append((panel.banner if first == 0 else None, table))
    return found


def _noted(panel: Panel) -> bool:
    """Whether lines say why they lack values; where the data are missing that is said once."""
    return not panel.missing and any(line_note(line) for line in panel.lines)


def markdown_page(reproduction: Reproduction, command: str = "", figures: Sequence[tuple[str, str]] = ()) -> str:
    """Tables, remarks and figures (``(file, what it shows)``), with the command that made them."""
    parts = []
    for panel in reproduction.panels:
        parts += [
            f"## {panel.column.label}",
            f"Not run: {_plain(panel.missing)}" if panel.missing else "",
            f"> **{panel.banner}.**" if panel.banner else "",
            f"> **strict: {panel.strict_banner}.**" if panel.strict_banner else "",
            _markdown_table(reproduction, panel),
        ]
    parts.append(markdown.bullets(map(_plain, remarks(reproduction))))
    if reproduction.failures:
        parts += ["## Failed", markdown.bullets(map(_plain, reproduction.failures))]
    return markdown.page(heading(reproduction), command, [*parts, *markdown.pictures(figures)])


def _markdown_table(reproduction: Reproduction, panel: Panel) -> str:
    heads, rows = heads_of(reproduction), []
    for line in panel.lines:
        name, *cells = line_texts(line, reproduction)
        first = f"*{_plain(name)}*" if line.control else _plain(name)
        rows.append([first, *cells, *[_plain(line_note(line))] * _noted(panel)])
    return markdown.table([*heads, *[""] * _noted(panel)], [("", rows)], (0, len(heads)))


def _plain(text: str) -> str:
    return markdown.escaped(text, "\\|*~_<")  # notes name commands and protocols as `code`


COLUMNS = (
    "paper", "table", "data", "row", "method", "control", "metric", "published", "published_spread", "ours",
    "ours_spread", "difference_percent", "strict_metric", "strict", "strict_spread", "seeds", "quick", "note",
)  # fmt: skip


def _cells(reproduction: Reproduction) -> list[list[Any]]:
    """Values under ``COLUMNS``, one list for every row, data set and metric."""
    table, found = reproduction.table, []
    for panel in reproduction.panels:
        for line in panel.lines:
            note = panel.missing or line_note(line)
            for metric, entry in zip(table.metrics, line.entries, strict=True):
                published = entry.published
                found.append(
                    [table.paper, table.number, panel.column.key, line.name, line.method, line.control, metric,
                     *((published.number, published.spread) if published else (None, None)),
                     *_numbers(entry.ours), entry.difference, strict_name(metric), *_numbers(entry.strict),
                     len(line.ours), reproduction.quick, note]
                )  # fmt: skip
    return found


def as_csv(reproduction: Reproduction) -> str:
    """One line for every row, data set and metric."""
    rows = ([int(value) if isinstance(value, bool) else value for value in row] for row in _cells(reproduction))
    return csv_text(COLUMNS, rows)


def _numbers(summary: Summary | None) -> tuple[float | None, float | None]:
    if summary is None or math.isnan(summary.mean):
        return None, None
    return summary.mean, None if math.isnan(summary.spread) else summary.spread


def as_json(reproduction: Reproduction, command: str = "") -> dict[str, Any]:
    """The one object that ``fedrec reproduce --json`` writes."""
    return {
        "schema": SCHEMA,
        "paper": reproduction.table.paper,
        "table": reproduction.table.number,
        "protocol": reproduction.table.protocol,
        "seeds": list(reproduction.seeds),
        "quick": reproduction.quick,
        "leaks": {panel.column.key: panel.banner for panel in reproduction.panels},
        "strict_leaks": {panel.column.key: panel.strict_banner for panel in reproduction.panels},
        "cells": [dict(zip(COLUMNS, map(_plain_number, row), strict=True)) for row in _cells(reproduction)],
        "failures": reproduction.failures,
        "absent": [{"what": what, "reason": reason} for what, reason in reproduction.absent],
        "notes": remarks(reproduction),
        "command": command,
    }


def _plain_number(value: Any) -> Any:
    return float(value) if isinstance(value, Decimal) else value
