"""Whole histories that an audit's attacks read out of messages, a line for each method, attack and message."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

ATTACKS = ("pairs", "columns")
"""Attacks that name whole histories, and say nothing else."""


@dataclass(frozen=True)
class WholeHistories:
    """Of several seeds the one in which most were read."""

    method: str
    attack: str
    view: str
    """What was read: an upload, a masked message, or a sum."""
    users: int
    """Who are in the messages."""
    histories: int
    """Those whose whole history is named."""
    standing: int
    """Those whose whole history stands in a message as it is."""
    false: int
    """Named histories that nobody has."""
    popular: float
    """Share of users whose history are the most popular items, as many as they have."""


def whole_histories(rows: Sequence[Any]) -> list[WholeHistories]:
    """In the order in which they were audited; methods without anything to read are left out."""
    best: dict[tuple[str, ...], WholeHistories] = {}
    for row in rows:
        if row.attack not in ATTACKS or not row.figures:
            continue
        numbers = {name: round(row.figures[name]) for name in ("users", "histories", "standing", "false")}
        key = (row.method, row.attack, row.view or "upload")
        found = WholeHistories(*key, **numbers, popular=row.figures["popular_recall"])
        if key not in best or found.histories > best[key].histories:
            best[key] = found
    return list(best.values())


def not_read(rows: Sequence[Any]) -> list[str]:
    """Methods that were looked at, with nothing for any of these attacks."""
    able = {row.method for row in rows if row.attack in ATTACKS and row.figures}
    return list(dict.fromkeys(row.method for row in rows if row.attack in ATTACKS and row.method not in able))
