"""The page of ``fedrec compare``."""

from __future__ import annotations

import math
import os
import platform
from collections.abc import Callable, Iterable, Sequence
from datetime import datetime
from html import escape
from typing import Any

from fedrec.evaluation.rules import Rules
from fedrec.methods.registry import find as find_method
from fedrec.privacy.card import card_lines
from fedrec.report.model.comparison import FLOOR, Cell, Comparison, Group, Row
from fedrec.report.model.series import Series, series_of
from fedrec.report.page import figures
from fedrec.report.page.parts import (
    HtmlTable,
    Section,
    Td,
    Th,
    Tile,
    banner,
    card_html,
    folded,
    join,
    listed,
    paragraphs,
    tiles,
)
from fedrec.report.page.render import Page, render
from fedrec.report.text import wording
from fedrec.report.text.commands import run_command


def comparison_page(comparison: Comparison, command: str = "") -> str:
    """One self-contained HTML file."""
    series = series_of(comparison)
    floor = next((one for one in series if one.method == FLOOR), None)
    shown = dict.fromkeys([comparison.main, comparison.columns[0]])
    sections = [
        Section(
            "table", "Results", results_table(comparison) + paragraphs(wording.notes(comparison)[:3], "small soft")
        ),
        Section("curves", "Over rounds", join(figures.curves(series, metric) for metric in shown), "Curves"),
        Section("costs", "Quality against cost", costs(series, comparison.main), "Costs"),
    ]
    if floor is not None:
        who = figures.users(series, floor, comparison.main)
        sections.append(Section("users", "Who gains, who loses", who, "Users"))
    sections += [
        Section("protocol", f"Protocol {comparison.protocol.name}", protocol_html(comparison.protocol), "Protocol"),
        Section("privacy", "Privacy", privacy_cards(series), "Privacy"),
        Section("methods", "Method cards", cards(series), "Methods"),
        Section("commands", "Exact commands", commands(series, command), "Commands"),
    ]
    data, compared = comparison.data, [row for row in comparison.rows if not row.control]
    page = Page(
        title=f"{data['name']}: {len(compared)} method{'s'[: len(compared) != 1]} under {comparison.protocol.name}",
        lead=wording.title(comparison),
        opening=banner(comparison.banner) + failures_html(comparison.failures) + tiles(headline(comparison)),
        sections=[section for section in sections if section.body],
        footer=versions(series),
    )
    return render(page)


def headline(comparison: Comparison) -> list[Tile]:
    """The best of each kind, popularity and chance, on the main metric."""
    metric, found = comparison.main, []
    for group, rows in comparison.grouped():
        best = max(rows, key=lambda row: row.mean(metric))
        if group != "control" and math.isfinite(best.mean(metric)):
            found.append((f"best {wording.HEADINGS[group]}", best.mean(metric), best.method))
    floor = comparison.row(FLOOR)
    if floor is not None and metric in floor.cells:
        found.append((FLOOR, floor.cells[metric].summary.mean, "the same list for everybody"))
    if metric in comparison.chance:
        found.append(("chance", comparison.chance[metric], "exact"))
    return [Tile(f"{what}, {metric}", f"{value:.4f}", about) for what, value, about in found]


def results_table(comparison: Comparison) -> str:
    """All methods, sortable."""
    failed = bool(comparison.failures)
    heads = [Th("method", number=False), *(Th(name) for name in comparison.columns)]
    heads += [Th("s a run", about="wall-clock seconds"), Th("KiB up", about="per client and round")]
    heads += [Th("failed", number=False, cls="left")] * failed
    rows = [("control" if row.control else "", _cells(row, comparison, failed)) for row in comparison.rows]
    caption = f"Test values on {comparison.data['name']}; a click on a heading sorts. KiB up: per client and round."
    return HtmlTable(caption, heads, rows).html()


def _cells(row: Row, comparison: Comparison, failed: bool) -> list[Td]:
    found = [Td(escape(wording.name_text(row, comparison)) + group_tag(row.group))]
    found += [value_cell(row.cells.get(name)) for name in comparison.columns]
    found.append(Td(wording.seconds_text(row), row.seconds if row.runs else None))
    upload = wording.upload_text(row)
    found.append(Td(upload, None if upload == "-" else row.bytes("upload")))
    return found + [Td(escape(wording.failure_text(row.failures)), cls="note")] * failed


def group_tag(group: Group) -> str:
    """What stands behind the name of a method that is not federated."""
    return "" if group == "federated" else f' <span class="tag">{wording.HEADINGS[group].removesuffix("s")}</span>'


def value_cell(cell: Cell | None) -> Td:
    """Mean, mark and spread of one method on one metric."""
    if cell is None or math.isnan(cell.summary.mean):
        return Td("-")
    mean = f"{cell.summary.mean:.4f}"
    text = f"<b>{mean}</b>" if cell.best else mean
    text += f'<span class="mark">{escape(cell.mark)}</span>' if cell.mark else ""
    text += f' <span class="spread">±{cell.summary.spread:.4f}</span>' if cell.summary.count > 1 else ""
    return Td(text, cell.summary.mean)


def costs(series: Sequence[Series], metric: str, where: str = "") -> str:
    """Quality against bytes and against seconds."""
    sending = [one for one in series if one.group != "centralised" and one.method not in ("random", FLOOR)]
    left_out = "Centralised models are left out: they collect the histories themselves."
    signs = "Circles: federated; squares: centralised; diamonds: controls."
    axes: tuple[tuple[str, Sequence[Series], Callable[[Series], float], str, str], ...] = (
        ("bytes", sending, lambda one: one.upload / 1024, "KiB uploaded per client, whole training", left_out),
        ("seconds", series, lambda one: one.seconds, "seconds a run", signs),
    )
    best = "Line: the best that can be had at each cost. "
    return join(
        figures.against(who, metric, cost, axis, f"{metric} against {what}{where}", best + about)
        for what, who, cost, axis, about in axes
    )


def failures_html(failures: Iterable[Any]) -> str:
    """Runs that gave no result, named."""
    return join(banner(text, "warn") for text in wording.lost_texts(failures))


def protocol_html(protocol: Rules) -> str:
    """What the protocol does, where it comes from, and what is wrong with it."""
    flaws = "<p><strong>Flaws of this procedure:</strong></p>" + listed(protocol.flaws)
    about = f'<p>{escape(protocol.description)}</p><p class="small soft">Source: {escape(protocol.source)}.</p>'
    return about + (flaws if protocol.flaws else "<p>No flaw is known.</p>")


def cards(series: Sequence[Series]) -> str:
    """The card of every method, once, with the settings it had here."""
    used: dict[str, list[Series]] = {}
    for one in series:
        used.setdefault(one.method, []).append(one)
    found = []
    for method, own in used.items():
        try:
            card = find_method(method).card
        except Exception:  # a package that was there when the run was made
            continue
        results = [one.runs[0].result for one in own if one.runs]
        settings = {wording.settings_text(result["settings"].get("settings", {})) for result in results}
        secure = next((wording.secure_text(result["secure"]) for result in results if result.get("secure")), "")
        found.append(card_html(method, card, settings.pop() if len(settings) == 1 else "", secure))
    return join(found)


def privacy_cards(series: Sequence[Series]) -> str:
    """What each federated method guarantees here, folded: the same in all of its runs, or the first's."""
    found = []
    for one in series:
        card = one.runs[0].result.get("privacy_card") if one.runs and one.group == "federated" else None
        if card:
            inside = f"<pre>{escape(chr(10).join(card_lines(card)))}</pre>"
            found.append(folded(one.name, one.runs[0].result["privacy"], inside))
    return join(found)


def commands(series: Sequence[Series], command: str) -> str:
    """What made the page, and what repeats each run."""
    top = f"<p>This page:</p><pre>{escape(command)}</pre>" if command else ""
    lines = dict.fromkeys(run_command(run.result["settings"]) for one in series for run in one.runs)
    each = "\n".join(lines)
    title = f"Each of the {len(lines)} runs by itself"
    return top + f"<details><summary>{title}</summary><pre>{escape(each)}</pre></details>"


def versions(series: Sequence[Series]) -> str:
    """When and where the page was made, and the versions that made the runs."""
    found: dict[str, str] = {}
    for one in series:
        for run in one.runs:
            found |= run.result.get("versions", {})
    made = ", ".join(f"{name} {version}" for name, version in found.items())
    return f"{here()}{' Runs: ' + made + '.' if made else ''}"


def here() -> str:
    """``Made 2026-11-16 15:40 on Linux x86_64, 2 processors.``; no name of a machine or of a person."""
    system = " ".join(part for part in (platform.system(), platform.machine()) if part) or "an unknown system"
    count = os.cpu_count() or 1
    when = datetime.now().astimezone().strftime("%Y-%m-%d %H:%M %z")
    return f"Made {when} on {system}, {count} processor{'s'[: count != 1]}."
