"""The round loop: choose, run, evaluate, select, remember. One loop for every runtime."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import asdict, dataclass, field
from typing import Any, Literal, Protocol

import numpy as np
from numpy.typing import NDArray

from fedrec import keyed
from fedrec.core.disclosed import Disclosed
from fedrec.core.participation import Participation
from fedrec.data.ragged import Int64
from fedrec.evaluation.sums import MetricSums

PerUser = dict[str, NDArray[np.float64]]
SETTLE_FROM = 3
"""The first round after which a run may be called settled: the first losses say little."""


@dataclass(frozen=True)
class Cost:
    """What a round cost; bytes are means per client that took part."""

    loss: float
    participants: int
    upload: float = 0.0
    download: float = 0.0
    train_seconds: float = 0.0
    aggregate_seconds: float = 0.0
    evaluate_seconds: float = 0.0
    """Of an evaluation within the round, where local models are evaluated."""
    missing: tuple[str, ...] = ()
    """Who was asked and did not answer, or was left out, and why."""
    secure: dict[str, Any] | None = None
    """What secure sums cost, where they were used: cohorts, bytes of each step, seconds."""
    unsent: bool = False
    """Whether it is known beforehand that too few have anything to add, so that nobody sent anything."""
    change: float | None = None
    """How much losses have changed, as a share of them, where it is known better than from their means."""


@dataclass(frozen=True)
class Evaluated:
    """Metric sums on the validation and the test part, and per-user values where they stay in process."""

    valid: MetricSums
    test: MetricSums
    per_user: PerUser | None = None


class Runtime(Protocol):
    """Something that can run rounds: in process, or over a network."""

    def client_keys(self) -> keyed.U64:
        """A key for each client, in the server's order."""

    def round(self, number: int, chosen: Int64, answering: Int64, evaluate: bool) -> tuple[Cost, Evaluated | None]:
        """Run round ``number``; with ``evaluate``, evaluate the clients' local models before aggregation."""

    def evaluate(self, number: int) -> Evaluated:
        """Evaluate what clients would hold after their next download."""

    def snapshot(self) -> Any:
        """The whole state as a value that the next round does not change."""

    def restore(self, state: Any) -> None:
        """Go back to a snapshot."""

    def disclosed(self) -> Disclosed | None:
        """What the rounds so far have shown of the uploads; None where a runtime knows it without them."""

    def recall(self, shown: Disclosed | None, rounds: int) -> None:
        """Take over what ``rounds`` rounds in another process have shown; None where nobody wrote it down."""


@dataclass(frozen=True)
class Plan:
    """How many rounds, who takes part, when to evaluate and when to stop."""

    rounds: int
    seed: int
    participation: Participation
    evaluated: Literal["local", "download"]
    select_part: Literal["valid", "test"]
    select_metric: str
    patience: int | None = None
    """Stop after this many evaluated rounds without a better value."""
    settle: float = 0.0
    """Stop when the loss changes by less than this share from one round to the next, from the third round on."""
    settled_after: int | None = None
    """Stop after so many rounds in which every client took part: the method learns nothing from more."""
    evaluate_every: int = 1
    keep_selected: bool = True
    """Whether to keep the selected round's state, for recommendations (a copy of all state)."""


@dataclass(frozen=True)
class Record:
    """One line of a run's log."""

    round: int
    loss: float
    participants: int
    valid: dict[str, float] | None
    test: dict[str, float] | None
    seconds: dict[str, float]
    bytes: dict[str, float]
    missing: tuple[str, ...] = ()
    secure: dict[str, Any] | None = None
    unsent: bool = False
    change: float | None = None

    def as_dict(self) -> dict[str, Any]:
        """Plain values; ``secure``, ``unsent`` and ``change`` only where there is something to say."""
        plain = asdict(self)
        for name, nothing in (
            ("secure", not self.secure),
            ("unsent", not self.unsent),
            ("change", self.change is None),
        ):
            if nothing:
                del plain[name]
        return plain


@dataclass
class Progress:
    """Where a run stands: all that must survive a stop."""

    round: int = 0
    best_round: int = 0
    best_value: float = float("-inf")
    evaluated_since_best: int = 0
    state: Any = None
    """The runtime's state after ``round``; filled when a checkpoint is written or read."""
    best_state: Any = None
    """The runtime's state at ``best_round``."""
    best_per_user: PerUser | None = None
    disclosed: Disclosed | None = None
    """What the rounds have shown of the uploads."""
    records: list[Record] = field(default_factory=list)


def run_rounds(
    runtime: Runtime,
    plan: Plan,
    progress: Progress,
    on_round: Callable[[Record, Progress], None],
) -> Progress:
    """Run from where ``progress`` stands to the end of the plan.

    Randomness is keyed by the round's number, so a resumed run equals one that was never stopped.
    """
    if progress.state is not None:
        runtime.restore(progress.state)
        runtime.recall(progress.disclosed, progress.round)
    while progress.round < plan.rounds and not _exhausted(plan, progress):
        keys = runtime.client_keys()  # in a federation, clients may have joined since the last round
        if _settled(plan, progress, len(keys)):
            break
        number = progress.round + 1
        chosen = plan.participation.choose(plan.seed, number, keys)
        answering = plan.participation.answering(plan.seed, number, keys, chosen)
        last = number == plan.rounds or (len(answering) == len(keys) and _settled(plan, progress, len(keys), 1))
        evaluate_now = last or number % plan.evaluate_every == 0
        cost, evaluated = runtime.round(number, chosen, answering, evaluate_now and plan.evaluated == "local")
        began = time.perf_counter()
        if evaluate_now and plan.evaluated == "download":
            evaluated = runtime.evaluate(number)
        record = _record(number, cost, evaluated, time.perf_counter() - began)
        _advance(runtime, plan, progress, record, evaluated)
        progress.disclosed = runtime.disclosed()
        on_round(record, progress)
    return progress


def _record(number: int, cost: Cost, evaluated: Evaluated | None, evaluate_seconds: float) -> Record:
    return Record(
        round=number,
        loss=cost.loss,
        participants=cost.participants,
        valid=evaluated.valid.means() if evaluated else None,
        test=(evaluated.test.means() or None) if evaluated else None,  # none where it was left out
        seconds={
            "train": cost.train_seconds,
            "aggregate": cost.aggregate_seconds,
            "evaluate": cost.evaluate_seconds + evaluate_seconds,
        },
        bytes={"upload": cost.upload, "download": cost.download},
        missing=cost.missing,
        secure=cost.secure,
        unsent=cost.unsent,
        change=cost.change,
    )


def _advance(runtime: Runtime, plan: Plan, progress: Progress, record: Record, evaluated: Evaluated | None) -> None:
    progress.round = record.round
    progress.records.append(record)
    if evaluated is None:
        return
    means = record.valid if plan.select_part == "valid" else record.test
    value = (means or {}).get(plan.select_metric, float("nan"))
    part = evaluated.valid if plan.select_part == "valid" else evaluated.test
    if not part.count and progress.best_value == float("-inf"):  # nobody said how good it is: the last round is taken
        progress.best_round, progress.best_state = record.round, None
        progress.best_state = runtime.snapshot() if plan.keep_selected else None
        progress.best_per_user = evaluated.per_user
    elif value > progress.best_value:
        progress.best_round, progress.best_value, progress.evaluated_since_best = record.round, value, 0
        progress.best_state = None  # let go of the old copy before the new one is made
        progress.best_state = runtime.snapshot() if plan.keep_selected else None
        progress.best_per_user = evaluated.per_user
    else:
        progress.evaluated_since_best += 1


def _settled(plan: Plan, progress: Progress, clients: int, more: int = 0) -> bool:
    """Whether as many rounds with all ``clients`` lie behind as the method needs, counting ``more`` to come."""
    if plan.settled_after is None:
        return False
    return sum(record.participants == clients for record in progress.records) + more >= plan.settled_after


def _exhausted(plan: Plan, progress: Progress) -> bool:
    if plan.patience is not None and progress.evaluated_since_best >= plan.patience:
        return True
    if not plan.settle or len(progress.records) < SETTLE_FROM:
        return False
    before, now = progress.records[-2:]
    if now.change is not None:
        return abs(now.change) < plan.settle
    return abs(now.loss - before.loss) < plan.settle * abs(now.loss)
