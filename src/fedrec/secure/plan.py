"""One secure sum, as all parties must see it: its digest goes into every signature, key and mask."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Container
from dataclasses import asdict, astuple, dataclass, fields
from functools import cached_property
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fedrec.data.ragged import Int64
from fedrec.errors import BadInput
from fedrec.secure.check import CHECKS
from fedrec.secure.failures import Refusal
from fedrec.secure.graph import circle, committee, neighbour_table
from fedrec.secure.layout import Layout
from fedrec.secure.ring import word_type
from fedrec.secure.rules import Rules

VERSION = 1
MOST_MEMBERS = 2**20


@dataclass(frozen=True)
class Plan:
    """What the server proposes and every member checks before it takes part."""

    run: str
    round: int
    cohort: int
    attempt: int
    members: tuple[str, ...]
    """Names, ascending; a member's place in it is its number in messages."""
    rules: Rules
    layout: Layout
    idle: tuple[int, ...] = ()
    """Places of members that have nothing to add to a method's sums, ascending: zeros hide nobody."""
    agreed: str = ""
    """A digest of what all members trained with; empty where they are in one process."""

    def __post_init__(self) -> None:
        n = len(self.members)
        rules = self.rules
        numbers = (self.round, self.cohort, self.attempt, *astuple(rules), *self.idle)
        if {type(number) for number in numbers} != {int} or {
            type(name) for name in (self.run, self.agreed, *self.members)
        } != {str}:
            raise BadInput("the plan of a secure sum has whole numbers and names as text")
        if not 3 <= n <= MOST_MEMBERS:
            raise BadInput(f"a secure sum has 3 to {MOST_MEMBERS:,} members, not {n}")
        if any(left >= right for left, right in pairwise(self.members)):
            raise BadInput("members of a secure sum must be in ascending order, each once")
        if min(self.round, self.cohort, self.attempt) < 0:
            raise BadInput("round, cohort and attempt of a secure sum count from 0")
        if not 2 <= rules.threshold <= rules.neighbours <= n - 1:
            raise BadInput(
                f"a threshold of {rules.threshold} does not fit {rules.neighbours} neighbours of {n} members"
            )
        if not 0 <= rules.window <= rules.neighbours // 2 or not 0 <= rules.quorum <= rules.committee <= n:
            raise BadInput(f"a window of {rules.window} or a quorum of {rules.quorum} cannot be reached")
        if not rules.threshold < rules.least_survivors <= n:
            raise BadInput(f"at least {rules.least_survivors} survivors do not fit {n} members")
        if any(left >= right for left, right in pairwise((-1, *self.idle, n))):
            raise BadInput(f"those of {n} members that add nothing are places in ascending order, each once")
        if self.layout.summands < n:
            raise BadInput(f"a layout for {self.layout.summands} summands cannot hold the sum of {n} members")

    @staticmethod
    def of(
        run: str,
        round: int,
        members: list[str],
        layout: Layout,
        rules: Rules,
        *,
        cohort: int = 0,
        attempt: int = 0,
        idle: Container[str] = (),
        agreed: str = "",
    ) -> Plan:
        """A plan with the rules computed by :func:`fedrec.secure.rules.neighbourhood`; ``idle`` are names."""
        ordered = tuple(sorted(members))
        places = tuple(place for place, name in enumerate(ordered) if name in idle)
        return Plan(run, round, cohort, attempt, ordered, rules, layout, places, agreed)

    @cached_property
    def digest(self) -> bytes:
        return hashlib.sha256(b"fedrec secure sum plan|" + self.to_bytes()).digest()

    @cached_property
    def circle(self) -> Int64:
        """Members in the order in which they stand on the circle."""
        return circle(self.digest, len(self.members))

    @cached_property
    def table(self) -> Int64:
        """The neighbours of each member ``[members, neighbours]``."""
        return neighbour_table(self.circle, self.rules.neighbours)

    @cached_property
    def committee(self) -> Int64:
        """The members whose signatures decide which list of survivors holds."""
        return committee(self.digest, np.array(self.adding), self.rules.committee)

    @cached_property
    def adding(self) -> list[int]:
        """Places of those that add to the method's sums: who signs stands together, and the others hide nobody. All,
        where nobody does."""
        idle = set(self.idle)
        return [place for place in range(len(self.members)) if place not in idle] or list(range(len(self.members)))

    @cached_property
    def place(self) -> dict[str, int]:
        """Each member's place in ``members``."""
        return {name: place for place, name in enumerate(self.members)}

    def contributing(self, among: NDArray[np.bool_]) -> int:
        """How many of some members ``[members]`` add something to a method's sums."""
        inside = among.copy()
        inside[list(self.idle)] = False
        return int(inside.sum())

    def neighbours_of(self, place: int) -> list[int]:
        """A member's neighbours, ascending."""
        return [int(other) for other in self.table[place]]

    @property
    def masked_bytes(self) -> int:
        """Bytes of one masked vector with its check words."""
        return self.layout.length * word_type(self.layout.bits).itemsize + 8 * CHECKS

    def to_bytes(self) -> bytes:
        """The plan as it crosses the wire: one JSON text with sorted keys, so that equal plans are equal bytes."""
        content = {"version": VERSION} | {field.name: getattr(self, field.name) for field in fields(self)}
        for name in ("idle", "agreed"):
            if not content[name]:
                del content[name]
        return json.dumps(content, sort_keys=True, separators=(",", ":"), default=asdict).encode()

    @staticmethod
    def from_bytes(data: bytes) -> Plan:
        """The plan in a message; refused where it is not exactly what :meth:`to_bytes` writes."""
        try:
            content: dict[str, Any] = json.loads(data)
            plan = Plan(
                run=content["run"],
                round=content["round"],
                cohort=content["cohort"],
                attempt=content["attempt"],
                members=tuple(content["members"]),
                rules=Rules(**content["rules"]),
                layout=Layout.from_json(content["layout"]),
                idle=tuple(content.get("idle", ())),
                agreed=content.get("agreed", ""),
            )
            same = plan.to_bytes() == data
        except (ValueError, TypeError, KeyError, OverflowError, RecursionError, BadInput) as wrong:
            raise Refusal(f"the plan of a secure sum cannot be read: {wrong}") from None
        if not same:
            raise Refusal("the plan of a secure sum is not in the form that all members would sign")
        return plan
