"""A federation without a network: nodes answer in process, through the bytes that would cross the wire."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from fedrec.core.loop import Plan, Progress, run_rounds
from fedrec.deploy.flower.records import from_records, to_records
from fedrec.deploy.messages.envelope import BadLetter, Plain, fault_in, unpack_answer
from fedrec.deploy.messages.letters import Answer, Ask, Fault, Meet
from fedrec.deploy.node.node import Node
from fedrec.deploy.node.share import NodeOptions
from fedrec.deploy.server.federation import Federation
from fedrec.deploy.server.roster import Roster
from fedrec.deploy.server.rules import Rules
from fedrec.evaluation.protocols import find as find_protocol
from fedrec.experiment.prepare import prepare
from fedrec.runs.settings import RunSettings

RUN = "run-1"


class DirectExchange:
    """Nodes in this process. ``spoil(name, ask, work)`` may do something else than the work."""

    def __init__(self, options: list[NodeOptions], spoil: Callable[..., Any] | None = None) -> None:
        self.options = {o.name: o for o in options}
        self.spoil = spoil
        self.gone: set[str] = set()
        self.sent: list[tuple[str, Ask]] = []

    def online(self) -> set[str]:
        return set(self.options) - self.gone

    def absence(self, name: str) -> str:
        return "not connected"

    def send(self, asks: Mapping[str, Ask], deadline: float) -> dict[str, Answer | Fault]:
        answers: dict[str, Answer | Fault] = {}
        for name, ask in asks.items():
            self.sent.append((name, ask))

            def work(name: str = name, ask: Ask = ask) -> Answer:
                return Node(self.options[name], ask.run).answer(ask)  # a new process a message: nothing is kept

            try:
                answers[name] = self.spoil(name, ask, work) if self.spoil else work()
            except Exception as problem:
                answers[name] = Fault(type(problem).__name__)
        return answers


def delivered(plain: Plain) -> Answer | Fault:
    """A letter as it arrives over Flower's records, however it was altered."""
    try:
        found = from_records(to_records(plain))
        return fault_in(found) or unpack_answer(found)
    except BadLetter as problem:
        return Fault(f"not read: {problem}")


def federation(
    folder: Path,
    settings: RunSettings,
    nodes: int,
    rules: Rules | None = None,
    spoil: Callable[..., Any] | None = None,
) -> tuple[Federation, Plan, Progress, DirectExchange]:
    """A federation of ``nodes`` nodes over the settings' data, its plan and its progress."""
    options = [NodeOptions(f"node{i}", folder / f"node{i}", part=i, parts=nodes, repeatable=True) for i in range(nodes)]
    exchange = DirectExchange(options, spoil)
    word = Meet(RUN, settings.model_dump_json(), ())
    roster = Roster.of([Node(o, RUN).meet(word) for o in options])
    prepared = prepare(settings)
    plan = prepared.plan
    progress = Progress()

    def upcoming(number: int) -> Any:
        if number > plan.rounds:
            return None
        keys = roster.client_keys
        chosen = plan.participation.choose(plan.seed, number, keys)
        return plan.participation.answering(plan.seed, number, keys, chosen)

    world = roster.world(prepared.task.data.name, prepared.task.data.n_items)
    assert world == prepared.people.world
    made = Federation(
        prepared.method,
        world,
        roster,
        exchange,
        rules or Rules(wait=0.1),
        RUN,
        settings.seed,
        upcoming,
        find_protocol(settings.protocol).metrics,
        lambda: progress.best_round,
    )
    return made, plan, progress, exchange


def records_of(runtime: Any, plan: Plan, progress: Progress) -> list[Any]:
    """The log of a whole run."""
    return run_rounds(runtime, plan, progress, lambda record, now: None).records


def in_process(settings: RunSettings) -> list[Any]:
    """The log of the same run in process."""
    prepared = prepare(settings)
    return records_of(prepared.runtime, prepared.plan, Progress())
