"""A small cohort with real keys, and a way to play a whole secure sum with dropouts and a dishonest server."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from functools import lru_cache

import numpy as np
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

from fedrec.secure.aggregator import Aggregator, SecureSum
from fedrec.secure.course import Dropouts
from fedrec.secure.failures import TooFew
from fedrec.secure.identity import Directory, new_key, public_bytes
from fedrec.secure.layout import Field, Layout
from fedrec.secure.messages import Kind
from fedrec.secure.participant import Member, Participant
from fedrec.secure.plan import Plan
from fedrec.secure.policy import Policy
from fedrec.secure.randomness import Stream
from fedrec.secure.ring import Bits, Integers
from fedrec.secure.rules import Rules

OPEN = Policy(least_members=3, least_survivors=1, colluding=0.0, server="curious", security_bits=0)
"""A member that takes any plan, for graphs that are made by hand."""


@lru_cache(maxsize=64)
def key_of(name: str) -> Ed25519PrivateKey:
    return new_key(Stream.named(0, "long-term key", name).bytes)


@lru_cache(maxsize=16)
def directory(n: int) -> Directory:
    return Directory({name: public_bytes(key_of(name)) for name in names(n)})


def names(n: int) -> list[str]:
    return [f"member {place:03d}" for place in range(n)]


def make_plan(
    n: int,
    neighbours: int | None = None,
    threshold: int | None = None,
    *,
    window: int = 0,
    quorum: int | None = None,
    length: int = 5,
    least_survivors: int | None = None,
    bits: Bits = 32,
    run: str = "run",
    round: int = 1,
    cohort: int = 0,
    attempt: int = 0,
) -> Plan:
    """A plan; by default everybody is everybody's neighbour and more than half must sign."""
    layout = Layout((Field("table", (length,), 1.0),), n, bits)
    t = threshold or n // 2
    rules = Rules(neighbours or n - 1, t, window, n, n // 2 + 1 if quorum is None else quorum, least_survivors or t + 1)
    return Plan(run, round, cohort, attempt, tuple(names(n)), rules, layout)


def member(name: str, n: int, policy: Policy = OPEN) -> Member:
    return Member(name, key_of(name), directory(n), policy)


def make_values(plan: Plan, seed: int = 0) -> list[Integers]:
    """Whole numbers for each member, up to the extremes of the ring."""
    scale = plan.layout.scales["table"]
    reach = scale.largest // scale.summands
    rng = np.random.default_rng(seed)
    values = rng.integers(-reach, reach, (len(plan.members), plan.layout.length), endpoint=True)
    values[:, 0] = reach if seed % 2 else -reach
    return list(values)


@dataclass
class Transcript:
    """All that crosses the wire, in order: step, member, and the bytes."""

    sent: list[tuple[Kind, int, bytes]] = field(default_factory=list)
    received: list[tuple[Kind, int, bytes]] = field(default_factory=list)


@dataclass
class Game:
    """One attempt, step by step. A member that refuses for too few neighbours has dropped out."""

    plan: Plan
    values: list[Integers]
    dropouts: Dropouts = field(default_factory=dict)
    relay: Callable[[Kind, int, bytes], bytes] = lambda kind, place, content: content
    """What the server passes on instead of what it should (``kind`` is the step that it asks for)."""

    def __post_init__(self) -> None:
        n = len(self.plan.members)
        self.parts: list[Participant] = [member(name, n).join(self.plan) for name in self.plan.members]
        self.server = Aggregator(self.plan, directory(n))
        self.inbox: dict[str, bytes] = dict.fromkeys(self.plan.members, b"")
        self.transcript = Transcript()

    def ask(self, kind: Kind, place: int, content: bytes) -> bytes:
        part = self.parts[place]
        if kind is Kind.ADVERTISE:
            return part.advertise()
        if kind is Kind.INPUT:
            return part.mask(content, self.values[place])
        return {Kind.SHARE: part.share, Kind.CONFIRM: part.confirm, Kind.UNMASK: part.unmask}[kind](content)

    def step(self, kind: Kind) -> None:
        """Ask every member that is still there, and close the step."""
        for name, content in self.inbox.items():
            place = self.plan.place[name]
            if self.dropouts.get(place, 9) <= kind:
                continue
            content = self.relay(kind, place, content)
            self.transcript.received.append((kind, place, content))
            try:
                message = self.ask(kind, place, content)
            except TooFew:
                continue
            self.transcript.sent.append((kind, place, message))
            self.server.receive(message)
        if kind is not Kind.UNMASK:
            self.inbox = self.server.close()

    def until(self, last: Kind) -> Game:
        """Play up to and including a step."""
        for kind in Kind:
            if kind <= last:
                self.step(kind)
        return self

    def play(self) -> SecureSum:
        return self.until(Kind.UNMASK).server.total()
