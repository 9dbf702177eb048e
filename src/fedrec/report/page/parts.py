"""Pieces of a page as HTML: sections, banners, tiles, tables that sort, cards."""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from html import escape
from typing import Any

from fedrec.core.method import Card
from fedrec.report.text.audit import card_facts


@dataclass(frozen=True)
class Section:
    """A part of the page with a place in its contents."""

    id: str
    title: str
    body: str
    short: str = ""
    """What the contents call it; the title where empty."""


def join(parts: Iterable[str]) -> str:
    return "\n".join(part for part in parts if part)


def attributes(**given: Any) -> str:
    """Attributes of an element; ``cls`` is its class, an underscore a dash; what is None or empty is left out."""
    found = {"class" if key == "cls" else key.replace("_", "-"): value for key, value in given.items()}
    return "".join(f' {key}="{escape(str(value))}"' for key, value in found.items() if value not in (None, ""))


def data_block(content: Any) -> str:
    """Data for the script, as JSON that cannot end the element it stands in."""
    text = json.dumps(content, separators=(",", ":"), ensure_ascii=False).replace("<", "\\u003c")
    return f'<script type="application/json">{text}</script>'


def banner(text: str | None, kind: str = "") -> str:
    """A warning; its first word, up to a colon, stands out."""
    if not text:
        return ""
    head, colon, rest = text.partition(":")
    marked = f"<strong>{escape(head)}{colon}</strong>{escape(rest)}"
    return f"<p{attributes(cls=f'banner {kind}'.strip(), role='note')}>{marked}</p>"


@dataclass(frozen=True)
class Tile:
    """A headline figure."""

    name: str
    value: str
    about: str = ""


def tiles(found: Sequence[Tile]) -> str:
    if not found:
        return ""
    inside = join(
        f'<div class="tile"><dt>{escape(t.name)}</dt><dd>{escape(t.value)}<small>{escape(t.about)}</small></dd></div>'
        for t in found
    )
    return f'<dl class="tiles">{inside}</dl>'


@dataclass(frozen=True)
class Td:
    """One cell: what is shown (HTML), and the number it sorts by."""

    html: str
    value: float | None = None
    cls: str = ""


@dataclass(frozen=True)
class Th:
    """One heading."""

    text: str
    number: bool = True
    cls: str = ""
    about: str = ""


@dataclass(frozen=True)
class HtmlTable:
    """A table that sorts by any of its headings; the first cell of a row names it."""

    caption: str
    heads: Sequence[Th]
    rows: Sequence[tuple[str, Sequence[Td]]]
    """Class of the row, and its cells."""
    groups: Sequence[tuple[str, int]] = field(default_factory=tuple)
    """Headings over several columns, with how many each spans."""

    def html(self) -> str:
        over = ""
        if self.groups:
            cells = join(
                f"<th{attributes(scope='colgroup', colspan=span)}>{escape(text)}</th>" for text, span in self.groups
            )
            over = f'<tr class="groups">{cells}</tr>'
        kinds = {True: "number", False: "text"}
        heads = join(
            f"<th{attributes(scope='col', data_column=i, data_kind=kinds[h.number], cls=h.cls, title=h.about)}>"
            f"{escape(h.text)}</th>"
            for i, h in enumerate(self.heads)
        )
        rows = join(self._row(cls, cells) for cls, cells in self.rows)
        # the caption stands outside: inside, it would be as wide as the table and scroll out of sight
        return (
            f'<p class="caption">{escape(self.caption)}</p>'
            f'<div class="scroll" role="region" tabindex="0"{attributes(aria_label=self.caption)}>'
            f'<table class="sortable"{attributes(aria_label=self.caption)}><thead>{over}<tr>{heads}</tr></thead>'
            f"<tbody>{rows}</tbody></table></div>"
        )

    @staticmethod
    def _row(cls: str, cells: Sequence[Td]) -> str:
        first, *others = cells
        inside = f"<th{attributes(scope='row', cls=first.cls)}>{first.html}</th>"
        inside += "".join(f"<td{attributes(data_v=_sortable(c.value), cls=c.cls)}>{c.html}</td>" for c in others)
        return f"<tr{attributes(cls=cls)}>{inside}</tr>"


def _sortable(value: float | None) -> str | None:
    return None if value is None or value != value else repr(float(value))


def card_html(name: str, card: Card, used: str = "", secure: str = "") -> str:
    """A method's card, folded."""
    facts = card_facts(name, card)
    facts += [("settings here", used)] if used else []
    facts += [("secure sums here", secure)] if secure else []
    items = "".join(f"<li>{escape(text)}</li>" for text in card.departures)
    departures = f"<dt>departures</dt><dd><ul>{items}</ul></dd>" if items else ""
    return folded(name, card.title, facts_html(facts, departures))


def facts_html(facts: Iterable[tuple[str, str]], more: str = "") -> str:
    """What a card says, a line a fact."""
    inside = "".join(f"<dt>{escape(key)}</dt><dd>{escape(text)}</dd>" for key, text in facts)
    return f'<dl class="card">{inside}{more}</dl>'


def folded(name: str, about: str, inside: str) -> str:
    """What is seen when its name is clicked."""
    title = f'{escape(name)} <span class="soft">{escape(about)}</span>'
    return f"<details><summary>{title}</summary>{inside}</details>"


def paragraphs(texts: Iterable[str], cls: str = "small") -> str:
    return join(f"<p{attributes(cls=cls)}>{escape(text)}</p>" for text in texts)


def listed(texts: Sequence[str]) -> str:
    return f"<ol>{''.join(f'<li>{escape(text)}</li>' for text in texts)}</ol>" if texts else ""
