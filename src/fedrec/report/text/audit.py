"""An audit in words: a table on a terminal, a Markdown page, and lines for a method's card."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from fedrec.core.method import Card
from fedrec.recipes.measured import measured
from fedrec.report.model.audit import Figure, Summary, SumsSummary
from fedrec.report.text import markdown

if TYPE_CHECKING:
    from rich.table import Table

HEADS = (
    "method", "items from one upload", "popular", "membership AUC", "size", "held-out item", "ER@10", "defence",
    "defended", "adaptive", "cost", "/99",
)  # fmt: skip
NOT_READ = "not read"
"""In the place of a figure, where no attack that was asked for knows the method's messages."""
SUMS_HEADS = ("method", "message: AUC", "whose", "size", "sum: AUC", "popular", "whose", "size")
SUMS_NOTES = (
    "message: what a client sends, masked, as the server receives it; sum: what the server is left with",
    "AUC: whether an item is in a history, by the best of all attacks (an AUC below 0.50 counts as 1 minus it); 0.50 "
    "is chance; popular: by popularity alone, which everybody may know",
    "whose: which of the clients that were read has an item; 0.50 is chance, and knowing what is popular does not help",
    "size: highest rank correlation of guessed and true history sizes; over 50 clients, unrelated numbers reach "
    "0.3 once in thirty tries; fewer clients are read where vectors are long: over 18, they reach 0.5 as often",
)


@dataclass(frozen=True)
class Sheet:
    """A table, a line a method, and what its columns mean: the same on every surface."""

    heads: Sequence[str]
    rows: Sequence[Sequence[str]]
    notes: Sequence[str]
    words: Sequence[int] = (0,)
    """Places of the columns that are no numbers."""

    def terminal(self, heading: str) -> Table:
        from fedrec.report.text.terminal import bare_table

        table = bare_table(heading)
        for place, head in enumerate(self.heads):
            table.add_column(head, justify="left" if place in self.words else "right", no_wrap=place == 0)
        for row in self.rows:
            table.add_row(*row)
        return table

    def markdown(self) -> list[str]:
        return [markdown.table(self.heads, [("", self.rows)], self.words), markdown.bullets(self.notes)]


def sheet(summaries: Sequence[Summary]) -> Sheet:
    """What attacks on single uploads and dishonest clients get."""
    return Sheet(HEADS, [cells(one) for one in summaries], notes(summaries), (0, 1, 7))


def sums_sheet(sums: Sequence[SumsSummary]) -> Sheet:
    """What a server gets with secure sums."""
    return Sheet(SUMS_HEADS, [sums_cells(one) for one in sums], SUMS_NOTES)


def cells(one: Summary) -> list[str]:
    """A method's line; a dash where nobody looked."""
    none = {name: NOT_READ if name in one.unread else "–" for name in ("items", "membership", "held_out")}
    items, membership, held_out = none["items"], none["membership"], none["held_out"]
    if one.items_attack:
        items = f"{number(one.items['precision'])} / {number(one.items['recall'])} ({one.items_attack})"
    if one.membership is not None:
        membership = number(one.membership)
    if one.held_out is not None:
        held_out = f"{number(one.held_out)} ({number(one.held_out_blind)})"
    return [
        one.method, items, number(one.items.get("popular_precision")), membership, number(one.size), held_out,
        number(one.exposure, 3), one.defence, number(one.exposure_defended, 3), number(one.exposure_adaptive, 3),
        share(one.cost), share(one.cost_sampled),
    ]  # fmt: skip


def sums_cells(one: SumsSummary) -> list[str]:
    """A method's line, with secure sums."""
    message, total = one.message, one.sum
    numbers = (message.auc, message.whose, message.size, total.auc, one.popular, total.whose, total.size)
    return [one.method, *("–" if number != number else f"{number:.2f}" for number in numbers)]


def number(figure: Figure | None, digits: int = 2) -> str:
    """``0.99 ± 0.01``, or a dash."""
    if figure is None:
        return "–"
    spread = "" if figure.deviation is None else f" ± {figure.deviation:.{digits}f}"
    return f"{figure.mean:.{digits}f}{spread}"


def share(figure: Figure | None) -> str:
    """``+1.2 %``, or a dash."""
    return "–" if figure is None else f"{100 * figure.mean:+.1f} %"


def notes(summaries: Sequence[Summary]) -> list[str]:
    """What the columns mean."""
    shares = sorted({one.share for one in summaries if one.share})
    share = f"{100 * shares[0]:g} %" if shares else "no"
    chance = [one.items["chance"].mean for one in summaries if "chance" in one.items]
    return [
        "items from one upload: precision / recall of a client's items, by the best attack on its first upload; "
        + (f"chance is {min(chance):.2f}; " if chance else "")
        + "popular: precision of naming the most popular items instead",
        "membership AUC: whether an item is in a history, by shadow models (IMIA); 0.50 is chance",
        "size: rank correlation of guessed and true history sizes",
        "held-out item: how often the metrics that a node with one user reports name the item they were measured on, "
        "within 3 rounds (in brackets: how often the model's first item is the right one, without the metrics)",
        f"ER@10: share of honest users with a cold item in their top ten when {share} of the clients promote it "
        "(boosted gradients), without a defence; defended: with it; adaptive: with it, when these clients know it",
        "cost: share of validation NDCG@10 that the defence costs when nobody attacks; /99: the same for HR@10/99 "
        "(below zero: it helps; with one seed and a few hundred users, NDCG@10 moves by several percent)",
        *["not read: the method sends no message that a requested attack can read; this does not mean that it is safe"]
        * any(one.unread for one in summaries),
    ]


def details(rows: Sequence[Any]) -> list[str]:
    """A line for every attack; ``not read`` where no message has what it knows to read."""
    found = []
    for row in rows:
        where = f"round {row.rounds}" if not row.share else f"{100 * row.share:g} % for {row.rounds} rounds"
        how = f"{row.defence}{', adaptive' if row.adaptive else ''}{', secure sums: ' + row.view if row.view else ''}"
        figures = "  ".join(f"{name} {value:.3f}" for name, value in row.figures.items()) or NOT_READ
        found.append(f"{row.method}  {row.attack or 'nobody'}  ({where}; {how}; seed {row.seed})  {figures}")
    return found


def markdown_page(
    summaries: Sequence[Summary],
    heading: str,
    command: str,
    sums: Sequence[SumsSummary] = (),
    whole: Sequence[str] = (),
) -> str:
    """Tables and notes, with the command that made them; ``whole``: parts about whole histories."""
    secure = sums_sheet(sums).markdown() if sums else []
    if not summaries:
        return markdown.page(heading, command, [*secure, *whole])
    told = [
        f"{one.method}: {number(one.participant)} ({number(one.participant_popular)})"
        for one in summaries
        if one.participant is not None
    ]
    nearest = "What a personal download tells a participant about its nearest other client (AUC; that of popularity):"
    return markdown.page(heading, command, [
        *sheet(summaries).markdown(),
        *([nearest, markdown.bullets(told)] if told else []),
        *(["## With secure sums", *secure] if secure else []),
        *whole,
    ])  # fmt: skip


def card_facts(name: str, card: Card) -> list[tuple[str, str]]:
    """What a method's card says, but for its departures."""
    enough = "yes: secure aggregation is possible" if card.sum_suffices else "no: the server sees each upload"
    return [
        ("paper", card.paper),
        ("stays private", card.private),
        ("is uploaded", card.upload),
        ("a sum suffices", enough),
        ("defence", card.robust),
        *(("measured", line) for line in card_lines(measured(name))),
    ]


def card_lines(measured: dict[str, Any]) -> list[str]:
    """What a method's card says of its stored audit."""
    lines = []
    if measured.get("items"):
        lines.append(f"one upload tells {measured['items']}; membership AUC {measured.get('membership', '–')}")
    if measured.get("exposure") is not None:
        lines.append(
            f"a cold item that 1 % of the clients boost: ER@10 {measured['exposure']} undefended, "
            f"{measured.get('defended', '–')} with {measured.get('defence', 'none')}, "
            f"{measured.get('adaptive', '–')} if they know the defence"
        )
    return lines
