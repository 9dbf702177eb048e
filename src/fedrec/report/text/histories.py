"""Whole histories that were read out of messages, as a table."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from fedrec.report.model.histories import not_read, whole_histories
from fedrec.report.text.audit import Sheet

HEADING = "Whole histories"
HEADS = ("method", "attack", "read in", "users", "stand in it", "read", "of users", "false", "popular")
NOTES = (
    "users: those in the messages that were read; nobody knows whose a history is",
    "stand in it: users whose whole history, exact, is in a message as it is; read: those and what shows when these "
    "are taken off; false: histories that were named and are nobody's",
    "popular: users whose history are the most popular items, as many as they have, which everybody may know",
    "pairs: the server keeps to the protocol; columns: it sends what asks for histories",
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
    notes = (*NOTES, f"not read, as no message has sums of pairs: {', '.join(missing)}") if missing else NOTES
    return Sheet(HEADS, lines, notes, (0, 1, 2))
