"""The page of ``fedrec audit``."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from html import escape
from typing import Any

from fedrec.attacks.registry import find as find_attack
from fedrec.attacks.registry import names as attack_names
from fedrec.report.model.audit import Summary
from fedrec.report.model.audit_sums import SumsSummary
from fedrec.report.page.parts import HtmlTable, Section, Td, Th, Tile, join, paragraphs, tiles
from fedrec.report.page.render import Page, render
from fedrec.report.text import audit_sums
from fedrec.report.text.audit import HEADS, cells, notes, number

TEXTS = ("method", "items from one upload", "defence")
FIGURES = ("precision", "recall", "auc", "popular_auc", "chance", "whose", "size_rank", "ER@10", "NDCG@10", "HR@10/99")


def audit_page(
    rows: Sequence[Any], summaries: Sequence[Summary], heading: str, command: str, sums: Sequence[SumsSummary] = ()
) -> str:
    """One self-contained HTML file: a line a method, then every attack, then who they are."""
    sections = []
    if summaries:
        table = _table(HEADS, map(cells, summaries))
        sections.append(Section("table", "What they get", table + paragraphs(notes(summaries), "small soft")))
    if sums:
        table = _table(audit_sums.HEADS, map(audit_sums.cells, sums))
        notes_ = paragraphs(audit_sums.NOTES, "small soft")
        sections.append(Section("sums", "What the server gets with secure sums", table + notes_, "Sums"))
    sections += [
        Section("attacks", "Every attack", _rows(rows), "Attacks"),
        Section("cards", "Who attacks, and what they see", _cards(), "Cards"),
        Section("command", "Exact command", f"<pre>{escape(command)}</pre>", "Command"),
    ]
    return render(
        Page(heading, "Attacks against real messages, beside chance and popularity", sections, _opening(summaries))
    )


def _opening(summaries: Sequence[Summary]) -> str:
    told = [one for one in summaries if one.items_attack]
    exposed = [one for one in summaries if one.exposure is not None]
    found = []
    if told:
        worst = max(told, key=lambda one: one.items["precision"].mean)
        found.append(Tile("most told by one upload", number(worst.items["precision"]), worst.method))
    if exposed:
        worst = max(exposed, key=lambda one: one.exposure.mean if one.exposure else 0.0)
        found.append(Tile("highest exposure, undefended", number(worst.exposure, 3), worst.method))
    held = [one for one in exposed if one.exposure_defended is not None]
    if held:
        worst = max(held, key=lambda one: one.exposure_defended.mean if one.exposure_defended else 0.0)
        found.append(Tile("highest exposure, defended", number(worst.exposure_defended, 3), worst.method))
    return tiles(found)


def _table(names: Sequence[str], texts: Iterable[Sequence[str]]) -> str:
    heads = [Th(head, number=head not in TEXTS) for head in names]
    lines = [("", [Td(escape(text), _value(text)) for text in row]) for row in texts]
    return HtmlTable("One line a method; a click on a heading sorts.", heads, lines).html()


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
        inside = "".join(f"<dt>{escape(key)}</dt><dd>{escape(text)}</dd>" for key, text in facts)
        title = f'{escape(name)} <span class="soft">{escape(card.title)}</span>'
        found.append(f'<details><summary>{title}</summary><dl class="card">{inside}</dl></details>')
    return join(found)


def _value(text: str) -> float | None:
    try:
        return float(text.split()[0])
    except (ValueError, IndexError):
        return None
