"""The page of ``fedrec reproduce``."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from html import escape

from fedrec.evaluation.protocols import find as find_protocol
from fedrec.evaluation.statistics import Summary
from fedrec.report.model.columns import main_metric
from fedrec.report.model.comparison import FLOOR, Group, is_central
from fedrec.report.model.reproduction import Line, Panel, Reproduction, heading, reading
from fedrec.report.model.series import Series, numbered
from fedrec.report.page import figures, svg
from fedrec.report.page.comparison import cards, commands, costs, protocol_html, versions
from fedrec.report.page.parts import HtmlTable, Section, Td, Th, Tile, attributes, banner, join, paragraphs, tiles
from fedrec.report.page.render import Page, render
from fedrec.report.text.reproduction import difference_text, digits_of, line_note, published_text, summary_text
from fedrec.report.text.wording import seeds_text

SIGNS: dict[str, tuple[Callable[..., str], float, str]] = {
    "published": (svg.circle, 6, "hollow sc"),
    "ours": (svg.circle, 5.5, "dot s0"),
    "strict": (svg.diamond, 6, "dot s1"),
}
NEAR = 5.0
"""Percent within which a value counts as reproduced."""


def reproduction_page(done: Reproduction, command: str = "") -> str:
    """One self-contained HTML file."""
    table = done.table
    sections: list[Section] = []
    every: list[Series] = []
    for panel in done.panels:
        sections += _panel(done, panel, every)
    protocol = find_protocol(table.protocol)
    both = "".join(f"<h3>{escape(p.name)}</h3>{protocol_html(p)}" for p in (protocol, find_protocol("strict")))
    if table.kind == "quality":
        sections += [
            Section("protocol", f"Protocol {protocol.name}, and strict", both, "Protocols"),
            Section("methods", "Method cards", cards(every), "Methods"),
        ]
    sections.append(Section("commands", "Exact commands", commands(every, command), "Commands"))
    few = f"Quick: {done.rounds} rounds instead of {table.rounds or 'all'}. It shows that it runs; it is not a result."
    quick = banner(few if done.quick else None, "warn")
    lost = join(banner(f"Failed: {text}", "warn") for text in done.failures)
    missing = join(banner(f"Not run: {what}: {why}", "warn") for what, why in done.absent)
    trained = f"protocol {table.protocol}, {seeds_text(done.seeds)}"
    about = trained if table.kind == "quality" else "computed from the wire encoding"
    page = Page(
        title=heading(done),
        lead=f"Published values, ours beside them; {about}",
        opening=quick + tiles(_headline(done)) + lost + missing + paragraphs(table.notes, "small soft"),
        sections=[section for section in sections if section.body],
        footer=versions(every),
    )
    return render(page)


def _headline(done: Reproduction) -> list[Tile]:
    """How much was reproduced, and the paper's own method on the first data set that was run."""
    entries = [entry for panel in done.panels for line in panel.rows for entry in line.entries]
    known = [entry for entry in entries if entry.difference is not None]
    if not known:
        return []
    found = []
    if done.table.kind == "bytes":
        same = sum(difference_text(entry) == "0" for entry in known)
        return [Tile("equal to the last digit", f"{same} of {len(known)}", "values of the table")]
    near = sum(abs(entry.difference or 0.0) <= NEAR for entry in known)
    found.append(Tile(f"within {NEAR:g} %", f"{near} of {len(known)}", f"of {len(entries)} published values"))
    for panel in done.panels:
        own = [line for line in panel.rows if line.method == done.table.paper and line.entries[0].ours is not None]
        if own:
            best = max(own, key=lambda line: line.entries[0].published.number if line.entries[0].published else 0)
            entry, metric = best.entries[0], done.table.metrics[0]
            where = f"{best.name}, {panel.column.label}"
            found.append(Tile(f"published {metric}", published_text(entry), where))
            found.append(Tile("ours, paper's protocol", summary_text(entry.ours), difference_text(entry)))
            found.append(Tile("ours, strict", summary_text(entry.strict), "nothing leaks"))
            break
    return found


def _panel(done: Reproduction, panel: Panel, every: list[Series]) -> list[Section]:
    table, key, label = done.table, panel.column.key, panel.column.label
    ours, strict = (numbered(_series(panel, which)) for which in ("ours", "strict"))
    every += [*ours, *strict]
    parts = [banner(panel.banner), banner(panel.strict_banner and f"strict: {panel.strict_banner}")]
    parts += [_dumbbell(done, panel), _table(done, panel), paragraphs(reading(done), "small soft")]
    found = [Section(f"table-{key}", label, join(parts))]
    if not ours:
        return found
    evaluated = {table.protocol: (ours, find_protocol(table.protocol)), "strict": (strict, find_protocol("strict"))}
    deeper = []
    for name, (series, protocol) in evaluated.items():
        metric, where = main_metric(protocol), f", {name}"
        floor = next((one for one in series if one.method == FLOOR), None)
        deeper.append(f"<h3>Under {escape(name)}</h3>")
        deeper += [figures.curves(series, metric, where), costs(series, metric, where)]
        deeper.append(figures.users(series, floor, metric) if floor is not None else "")
    return [*found, Section(f"more-{key}", f"{label}: rounds, costs, users", join(deeper), f"{label}: more")]


def _series(panel: Panel, which: str) -> list[Series]:
    found = []
    for line in panel.lines:
        runs = getattr(line, which)
        group: Group = "control" if line.control else "centralised" if is_central(line.method) else "federated"
        if runs and not (line.control and any(other.ours == line.ours for other in panel.rows)):
            found.append(Series(line.name, line.method, group, runs))
    return found


def _table(done: Reproduction, panel: Panel) -> str:
    quality = done.table.kind == "quality"
    groups = [("", 1)]
    heads = [Th("row", number=False)]
    for metric, printed in zip(done.table.metrics, done.table.printed, strict=True):
        name = printed if metric.lower() == printed.lower() else f"{printed} (here {metric})"
        groups.append((name, 4 if quality else 3))
        heads += [Th("published", cls="first"), Th("ours"), Th("off", about="ours against published, in percent")]
        heads += [Th("strict", about="ours where nothing leaks")] * quality
    rows = [("control" if line.control else "", _cells(line, quality)) for line in panel.lines]
    quick = f" QUICK: {done.rounds} rounds, no result." if done.quick else ""
    return HtmlTable(f"{done.table.paper} {done.table.name}, {panel.column.label}.{quick}", heads, rows, groups).html()


def _cells(line: Line, quality: bool) -> list[Td]:
    tag = ' <span class="tag">control</span>' if line.control else ""
    if note := line_note(line):
        tag += f" <span{attributes(cls='tag lost', title=note)}>{'not run' if line.absent else 'failed'}</span>"
    found = [Td(escape(line.name) + tag)]
    for entry in line.entries:
        digits = digits_of(entry)
        published = float(entry.published.number) if entry.published is not None else None
        found.append(Td(_spread(published_text(entry)), published, "first"))
        found.append(_td(entry.ours, digits))
        off = entry.difference
        near = "" if off is None else "off-near" if abs(off) <= NEAR else "off-far"
        found.append(Td(escape(difference_text(entry)), off, near))
        if quality:
            found.append(_td(entry.strict, digits))
    return found


def _td(summary: Summary | None, digits: int) -> Td:
    return Td(_spread(summary_text(summary, digits)), None if summary is None else summary.mean)


def _spread(text: str) -> str:
    mean, sign, spread = text.partition(" ±")
    return escape(mean) + (f' <span class="spread">±{escape(spread)}</span>' if sign else "")


def _dumbbell(done: Reproduction, panel: Panel) -> str:
    """Published, ours and strict on one line for every row, by the table's first metric."""
    if done.table.kind == "bytes" or not panel.drawn:
        return ""
    metric = done.table.metrics[0]
    legend = (
        '<p class="legend"><span><i class="round published"></i>published</span><span><i class="round ours"></i>'
        f'ours, {escape(done.table.protocol)}</span><span><i class="round strict"></i>ours, strict</span></p>'
    )
    charts = "".join(_dumbbells(panel.drawn, metric, panel, width) for width in (svg.WIDE, svg.NARROW))
    caption = "The way from the second mark to the third is what the protocol makes of the same method."
    return figures.figure("points", f"{metric} on {panel.column.label}", caption, legend + charts)


def _dumbbells(drawn: Sequence[tuple[Line, dict[str, float]]], metric: str, panel: Panel, width: int) -> str:
    narrow = width == svg.NARROW
    step = 34 if narrow else 26
    longest = max(len(line.name) for line, _ in drawn)
    left = 8 if narrow else min(0.4 * width, longest * svg.LETTER + 16)
    height = 34 + step * len(drawn) + 44
    frame = svg.Frame(width, height, left, width - 16, 24, height - 44)
    top = 1.04 * max(max(value for _, found in drawn for value in found.values()), 1e-9)
    x = svg.scale(0, top, frame.left, frame.right)
    ticks = svg.nice(0, top, 4 if narrow else 8)
    inside = "".join(svg.line(x(tick), frame.top, x(tick), frame.bottom, "grid") for tick in ticks)
    inside += svg.x_axis(frame, ticks, x, metric)
    if metric in panel.chance:
        at = x(panel.chance[metric])
        inside += svg.line(at, frame.top, at, frame.bottom, "floor") + svg.text(at, frame.top - 6, "chance", "middle")
    for place, (line, found) in enumerate(drawn):
        y = frame.top + step * (place + (0.68 if narrow else 0.5))
        where = (frame.left, y - 11, "start") if narrow else (frame.left - 10, y + 4, "end")
        name = svg.fitted(line.name, width - 16 if narrow else left - 10)
        inside += svg.text(where[0], where[1], name, where[2], "name", fill_opacity=0.7 if line.control else 1)
        inside += svg.line(x(min(found.values())), y, x(max(found.values())), y, "bridge")
        tip = [line.name, *([name, f"{value:.4f}"] for name, value in found.items())]
        more = {"data_tip": json.dumps(tip), "tabindex": 0, "role": "img"}
        label = ", ".join(f"{name} {value:.4f}" for name, value in found.items())
        marks = "".join(
            mark(x(found[name]), y, size, cls) for name, (mark, size, cls) in SIGNS.items() if name in found
        )
        inside += f"<g{attributes(aria_label=f'{line.name}: {label}', **more)}>{marks}</g>"
    return frame.svg(inside, f"{metric}: published, ours and strict").replace('role="img"', 'role="group"', 1)
