"""How a command ended, and what the fixture ``fedrec`` is."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass


@dataclass
class Done:
    """How a command ended."""

    status: int
    out: str
    err: str


Cli = Callable[..., Done]
