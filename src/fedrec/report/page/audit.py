"""The page of ``fedrec audit``."""

from __future__ import annotations

from collections.abc import Sequence
from html import escape
from typing import Any

from fedrec.attacks.registry import find as find_attack
from fedrec.attacks.registry import names as attack_names
from fedrec.report.model.audit import Summary, SumsSummary
from fedrec.report.page.parts import HtmlTable, Section, Td, Th, Tile, facts_html, folded, join, paragraphs, tiles
from fedrec.report.page.render import Page, render
from fedrec.report.text.audit import Sheet, number, sheet, sums_sheet
from fedrec.report.text.histories import HEADING, histories_sheet

FIGURES = (
    "precision", "recall", "auc", "popular_auc", "chance", "whose", "histories", "standing", "false", "size_rank",
    "ER@10", "NDCG@10", "HR@10/99",
)  # fmt: skip


def audit_page(
    rows: Sequence[Any], summaries: Sequence[Summary], heading: str, command: str, sums: Sequence[SumsSummary] = ()
) -> str:
    """One self-contained HTML file: a line a method, then every attack, then who they are."""
    sections = []
    if summaries:
        sections.append(Section("table", "What they get", _table(sheet(summaries))))
    if sums:
        sections.append(Section("sums", "What the server gets with secure sums", _table(sums_sheet(sums)), "Sums"))
    whole = histories_sheet(rows)
    if whole.rows:
        sections.append(Section("histories", HEADING, _table(whole), "Histories"))
    sections += [
        Section("attacks", "Every attack", _rows(rows), "Attacks"),
        Section("cards", "Who attacks, and what they see", _cards(), "Cards"),
        Section("command", "Exact command", f"<pre>{escape(command)}</pre>", "Command"),
    ]
    return render(
        Page(heading, "Attacks against real messages, beside chance and popularity", sections, _opening(summaries))
    )


def _opening(summaries: Sequence[Summary]) -> str:
    kinds = (
        ("most told by one upload", 2, [(one.items.get("precision"), one.method) for one in summaries]),
        ("highest exposure, undefended", 3, [(one.exposure, one.method) for one in summaries]),
        ("highest exposure, defended", 3, [(one.exposure_defended, one.method) for one in summaries if one.exposure]),
    )
    found = []
    for name, digits, figures in kinds:
        known = [(figure, method) for figure, method in figures if figure is not None]
        if known:
            worst, method = max(known, key=lambda pair: pair[0].mean)
            found.append(Tile(name, number(worst, digits), method))
    return tiles(found)


def _table(told: Sheet) -> str:
    heads = [Th(head, number=place not in told.words) for place, head in enumerate(told.heads)]
    lines = [("", [Td(escape(text), _value(text)) for text in row]) for row in told.rows]
    table = HtmlTable("One line a method; a click on a heading sorts.", heads, lines).html()
    return table + paragraphs(told.notes, "small soft")


def _rows(rows: Sequence[Any]) -> str:
    heads = [Th(name, number=False) for name in ("method", "attack", "defence")]
    heads += [Th("share"), Th("rounds"), Th("seed"), *(Th(name) for name in FIGURES)]
    lines = []
    for row in rows:
        if row.figures:
            how = row.defence + (", adaptive" if row.adaptive else "") + (f", {row.view}" if row.view else "")
            words = [row.method, row.attack or "nobody", how]
            numbers = [row.share, row.rounds, row.seed, *(row.figures.get(name) for name in FIGURES)]
            shown = [Td("" if n is None else f"{n:.3g}", None if n is None else float(n)) for n in numbers]
            lines.append(("", [*(Td(escape(word)) for word in words), *shown]))
    return HtmlTable("Every figure; empty where an attack says nothing of the kind.", heads, lines).html()


def _cards() -> str:
    found = []
    for name in attack_names():
        card = find_attack(name).card
        facts = (("who", card.who), ("sees", card.sees), ("paper", card.paper))
        found.append(folded(name, card.title, facts_html(facts)))
    return join(found)


def _value(text: str) -> float | None:
    try:
        return float(text.split()[0])
    except (ValueError, IndexError):
        return None
