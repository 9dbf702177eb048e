"""Reaching nodes by name, and what an exchange with them brings."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any, Protocol

from fedrec.core.loop import Evaluated
from fedrec.data.ragged import Int64
from fedrec.deploy.messages.letters import Answer, Ask, Fault, Step, Stepped
from fedrec.evaluation.sums import MetricSums


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
    """None once it is folded."""
    size: int


@dataclass(frozen=True)
class Taken:
    """A node's checked answer."""

    answer: Answer
    parts: tuple[Part, ...]

    def folded(self) -> Taken:
        """The same without the uploads themselves, which take memory."""
        return Taken(replace(self.answer, uploads=()), tuple(replace(part, upload=None) for part in self.parts))


@dataclass(frozen=True)
class Exchanged:
    """What an exchange brought: answers by node, and who is missing and why."""

    answering: Int64
    taken: dict[str, Taken]
    missing: tuple[str, ...]
    seconds: float
    state: Any = None
    """The server's next state, where the nodes trained."""
    aggregate_seconds: float = 0.0

    def evaluated(self) -> Evaluated:
        valid, test = MetricSums(), MetricSums()
        for name in sorted(self.taken):
            valid, test = valid + self.taken[name].answer.valid, test + self.taken[name].answer.test
        return Evaluated(valid, test)
