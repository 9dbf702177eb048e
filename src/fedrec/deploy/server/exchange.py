"""Reaching nodes by name, and what an exchange with them brings."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Protocol

from fedrec.core.loop import Evaluated
from fedrec.data.ragged import Int64
from fedrec.deploy.messages.letters import Answer, Ask, Fault, Step, Stepped


class Exchange(Protocol):
    """A way to reach nodes by name."""

    def online(self) -> set[str]:
        """Names of the nodes that can be reached now."""

    def absence(self, name: str) -> str:
        """Why a node cannot be reached now."""

    def send(self, asks: Mapping[str, Ask], deadline: float) -> dict[str, Answer | Fault]:
        """Ask nodes, all at once; what is not there by the deadline (seconds) is a fault."""

    def step(self, steps: Mapping[str, Step], deadline: float) -> dict[str, Stepped | Fault]:
        """The same for a step of a secure sum."""


@dataclass(frozen=True)
class Part:
    """Checked uploads of some consecutive clients of a node."""

    clients: Int64
    upload: Any
    size: int


@dataclass(frozen=True)
class Taken:
    """A node's checked answer."""

    answer: Answer
    parts: tuple[Part, ...]


@dataclass(frozen=True)
class Exchanged:
    """What an exchange brought, once it is folded: sums, and who is missing and why."""

    answering: Int64
    nodes: tuple[str, ...]
    """Those that trained and are in it."""
    missing: tuple[str, ...]
    seconds: float
    state: Any
    """The server's next state, where the nodes trained."""
    aggregate_seconds: float
    clients: int
    """Those that trained."""
    loss: float
    """Sum of their losses."""
    upload: float
    """Bytes of one of them, as a mean."""
    metrics: Evaluated
    secure: dict[str, Any] | None = None
    """What secure sums cost, a client."""
    unsent: bool = False
    """Whether too few had anything to add, so that nobody was asked for it."""
    losses: Mapping[str, float] = field(default_factory=dict)
    """The mean of each node's clients that trained; none where only sums are seen."""
