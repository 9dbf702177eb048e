"""All laws by number, a method checked against them one after the other, and the methods that a file defines."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path

from fedrec.core.method import Method
from fedrec.core.reference import Reference
from fedrec.errors import BadInput
from fedrec.laws import absence, equal_runs, groups, learning, messages, nodes, threads
from fedrec.laws.broken import LawBroken
from fedrec.methods import registry
from fedrec.methods.from_file import imported

Check = Callable[[str], None]


@dataclass(frozen=True)
class Law:
    """One law: its number in the design, what it says, and the checks that a method must pass."""

    number: int
    title: str
    checks: tuple[Check, ...]


LAWS = (
    Law(
        1,
        "a block of clients gives what blocks of one give; nothing is written at a distance",
        (
            equal_runs.same_in_any_blocks,
            groups.groups_in_any_blocks,
            equal_runs.some_scores_are_those_of_all,
            equal_runs.nothing_at_a_distance,
            equal_runs.nothing_on_the_method,
        ),
    ),
    Law(2, "nodes that exchange bytes give what one process gives", (nodes.nodes_give_the_same,)),
    Law(
        3,
        "the same seed gives the same result, whatever the number of threads",
        (equal_runs.same_twice, threads.same_with_any_threads),
    ),
    Law(
        4,
        "reordering clients reorders results and changes nothing else",
        (equal_runs.same_in_any_order, groups.groups_in_any_order),
    ),
    Law(
        5,
        "a client that does not take part keeps its private state",
        (absence.absent_keep_their_state, absence.dropouts_keep_their_state),
    ),
    Law(
        6,
        "messages round-trip through the wire; private values stay",
        (messages.messages_round_trip, messages.private_stays, messages.strangers_are_refused),
    ),
    Law(7, "a run stopped and resumed equals the run that was not stopped", (equal_runs.resumed_equals_whole,)),
    Law(8, "on a planted world the method finds the answer", (learning.the_answer_is_found,)),
    Law(
        10,
        "where a sum suffices, secure sums give the metrics of plain uploads",
        (equal_runs.secure_sums_change_nothing, groups.secure_sums_of_groups),
    ),
)
"""Laws of a method. Laws 9 and 11 are about kernels and protocols."""


@dataclass(frozen=True)
class Outcome:
    """How a method did under one law."""

    law: Law
    problems: tuple[str, ...]
    """What differed, one line per check that failed."""
    seconds: float

    @property
    def held(self) -> bool:
        return not self.problems


def check(method: str, laws: Iterable[Law] = LAWS) -> Iterator[Outcome]:
    """Try a registered method under every law. Whatever a method raises is a failure of that law, not of the check."""
    for law in laws:
        began = time.perf_counter()
        problems = [problem for one in law.checks if (problem := _problem(one, method)) is not None]
        yield Outcome(law, tuple(problems), time.perf_counter() - began)


def _problem(one: Check, method: str) -> str | None:
    try:
        one(method)
    except LawBroken as broken:
        return broken.difference
    except Exception as problem:
        said = " ".join(str(problem).split()).splitlines() or [""]
        return f"stopped with {type(problem).__name__}: {said[0]}".rstrip(": ")
    return None


def methods_in(path: Path) -> list[str]:
    """Import a file and give the names of the federated methods that it registers; anything else is bad input."""
    module = imported(path)
    here = {name: kind for name, kind in registry.registered().items() if kind.__module__ == module.__name__}
    federated = [name for name, kind in here.items() if issubclass(kind, Method)]
    if federated:
        return federated
    if any(issubclass(kind, Reference) for kind in here.values()):
        raise BadInput(f"{path} registers centralised references only; the laws are about federated methods")
    own = [v for v in vars(module).values() if isinstance(v, type) and v.__module__ == module.__name__]
    lost = [kind.__name__ for kind in own if issubclass(kind, Method)]
    if lost:
        raise BadInput(f"{path} defines {', '.join(lost)} but registers nothing; put @register above the class")
    raise BadInput(f"{path} has no method in it; derive a class from fedrec.core.method.Method and put @register above")
