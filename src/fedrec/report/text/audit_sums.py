"""An audit of secure sums in words: one table, on a terminal and in Markdown."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from fedrec.report.model.audit_sums import SumsSummary
from fedrec.report.text.markdown import line

if TYPE_CHECKING:
    from rich.table import Table

HEADS = ("method", "message: AUC", "whose", "size", "sum: AUC", "popular", "whose", "size")
NOTES = (
    "message: what a client sends, masked, as the server receives it; sum: what the server is left with",
    "AUC: whether an item is in a history, by the best of all attacks, either way round; 0.50 is chance; popular names "
    "the most popular items instead, which everybody may know",
    "whose: who of the clients that were read has an item; 0.50 is chance, and what is popular does not help",
    "size: highest rank correlation of guessed and true sizes of histories; of 50 clients, unrelated numbers reach "
    "0.3 once in thirty tries; fewer clients are read where vectors are long: of 18, they reach 0.5 as often",
)


def cells(one: SumsSummary) -> list[str]:
    """A method's line."""
    message, total = one.message, one.sum
    numbers = (message.auc, message.whose, message.size, total.auc, one.popular, total.whose, total.size)
    return [one.method, *("–" if number != number else f"{number:.2f}" for number in numbers)]


def terminal_table(summaries: Sequence[SumsSummary], heading: str) -> Table:
    """For a terminal."""
    from fedrec.report.text.terminal import bare_table

    table = bare_table(heading)
    for place, head in enumerate(HEADS):
        table.add_column(head, justify="left" if place == 0 else "right", no_wrap=place == 0)
    for one in summaries:
        table.add_row(*cells(one))
    return table


def markdown(summaries: Sequence[SumsSummary]) -> str:
    """Table and notes."""
    lines = [line(list(HEADS)), line(["---", *["---:"] * (len(HEADS) - 1)]), *(line(cells(one)) for one in summaries)]
    return "\n".join(lines) + "\n\n" + "\n".join(f"- {note}" for note in NOTES) + "\n"
