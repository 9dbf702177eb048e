"""Whole histories that were read out of messages, as a table."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from fedrec.report.model.histories import not_read, whole_histories
from fedrec.report.text.audit import Sheet

HEADING = "Whole histories"
HEADS = ("method", "attack", "read in", "users", "stand in it", "read", "of users", "false", "popular")
NOTES = (
    "users: those in the messages that were read; the attacks do not tell whose a history is",
    "stand in it: users whose whole, exact history can be read in a message directly; read: those, and those that "
    "appear when these are subtracted; false: histories that were named but are nobody's",
    "popular: users whose history is exactly the most popular items, which everybody may know",
    "pairs: the server keeps to the protocol; columns: it sends a model made to ask for histories",
)


def histories_sheet(rows: Sequence[Any]) -> Sheet:
    """A line for each method, attack and message; empty where no such attack was asked for."""
    lines = [
        [
            one.method, one.attack, one.view, f"{one.users:,}", f"{one.standing:,}", f"{one.histories:,}",
            f"{100 * one.histories / one.users:.0f} %", f"{one.false:,}", f"{100 * one.popular:.0f} %",
        ]
        for one in whole_histories(rows)
    ]  # fmt: skip
    missing = not_read(rows)
    notes = (*NOTES, f"not read, because no message has sums of pairs: {', '.join(missing)}") if missing else NOTES
    return Sheet(HEADS, lines, notes, (0, 1, 2))
