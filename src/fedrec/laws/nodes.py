"""Law 2: nodes that exchange bytes give what one process gives. The nodes are here, the bytes are real."""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Mapping
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

from fedrec.core.loop import Plan, Progress, run_rounds
from fedrec.core.method import Method
from fedrec.deploy.members import FILE, collect_members, make_sums_key, read_members
from fedrec.deploy.messages.envelope import pack_step, unpack_step
from fedrec.deploy.messages.letters import Answer, Ask, Fault, Meet, Step, Stepped
from fedrec.deploy.node.node import Node
from fedrec.deploy.node.share import NodeOptions
from fedrec.deploy.server.federation import Federation
from fedrec.deploy.server.roster import Roster
from fedrec.deploy.server.rules import Rules
from fedrec.deploy.server.serve import kind_for, upcoming
from fedrec.deploy.server.summing import SecureFederation
from fedrec.experiment.prepare import prepare
from fedrec.experiment.resolve import resolve
from fedrec.laws.broken import Comparison
from fedrec.laws.small_runs import SEED, Mixed, small_settings
from fedrec.runs.plan import defence_of
from fedrec.runs.settings import RunSettings

RUN = "run-1"
WORLD = "scale:users=30,items=80,interactions=700"
ROUNDS, NODES = 3, 2


class DirectExchange:
    """Nodes in this process. ``spoil(name, ask, work)`` may do something else than the work."""

    def __init__(self, options: list[NodeOptions], spoil: Callable[..., Any] | None = None) -> None:
        self.options = {o.name: o for o in options}
        self.spoil = spoil
        self.nodes: dict[str, Node] = {}
        """Nodes in the middle of a secure sum: whoever is taken out has crashed."""
        self.between: Callable[[str, Step, Callable[[], Stepped]], Stepped] | None = None
        self.gone: set[str] = set()
        self.sent: list[tuple[str, Ask]] = []

    def online(self) -> set[str]:
        return set(self.options) - self.gone

    def absence(self, name: str) -> str:
        return "not connected"

    def send(self, asks: Mapping[str, Ask], deadline: float) -> dict[str, Answer | Fault]:
        def work(name: str, ask: Ask) -> Answer:
            return Node(self.options[name], ask.run).answer(ask)  # a new process a message: nothing is kept

        self.sent += asks.items()
        return _answers(asks, work, self.spoil)

    def step(self, steps: Mapping[str, Step], deadline: float) -> dict[str, Stepped | Fault]:
        def work(name: str, step: Step) -> Stepped:
            if name not in self.nodes or not step.step:
                self.nodes[name] = Node(self.options[name], step.run)
            return self.nodes[name].step(unpack_step(pack_step(step)))

        return _answers(steps, work, self.between)


def _answers(asked: Mapping[str, Any], work: Callable[..., Any], instead: Callable[..., Any] | None) -> dict[str, Any]:
    """What comes of each node's work, or of what is done ``instead``; a node that fails says with what."""
    answers: dict[str, Any] = {}
    for name, one in asked.items():
        own = partial(work, name, one)
        try:
            answers[name] = instead(name, one, own) if instead else own()
        except Exception as problem:
            answers[name] = Fault(type(problem).__name__)
    return answers


def federation(
    folder: Path,
    settings: RunSettings,
    nodes: int,
    rules: Rules | None = None,
    spoil: Callable[..., Any] | None = None,
    plan: Plan | None = None,
) -> tuple[Federation, Plan, Progress, DirectExchange]:
    """A federation of ``nodes`` nodes over the settings' data, its plan and its progress."""
    options = [
        NodeOptions(f"node{i}", folder / f"node{i}", hosted=settings.data, part=i, parts=nodes, repeatable=True)
        for i in range(nodes)
    ]
    members: dict[str, Any] = {}
    if settings.secure:
        public = [make_sums_key(folder, option.name, 10**6)[1] for option in options]
        collect_members(public, folder / FILE)
        members = read_members(folder / FILE)
        options = [
            replace(
                option,
                members=folder / FILE,
                sums_key=folder / f"{option.name}.sums",
                secure_least=settings.secure_least,
                secure_colluding=settings.secure_colluding,
            )
            for option in options
        ]
    exchange = DirectExchange(options, spoil)
    word = Meet(RUN, settings.model_dump_json(), ())
    roster = Roster.of([Node(o, RUN).meet(word) for o in options])
    prepared = prepare(settings.model_copy(update={"node_sums": False, "nodes": max(3, nodes)}))
    chosen_plan = plan or prepared.plan
    progress = Progress()

    world = roster.world(prepared.task.data.name, prepared.task.data.n_items)
    assert world == prepared.people.world
    assert isinstance(prepared.method, Method)
    made = kind_for(settings)(
        prepared.method,
        world,
        roster,
        exchange,
        rules or Rules(wait=0.1),
        RUN,
        settings.seed,
        upcoming(chosen_plan),
        prepared.task.protocol.metrics,
        lambda: progress.best_round,
        defence_of(settings),
    )
    if isinstance(made, SecureFederation):
        made.with_members(settings, members)
    return made, chosen_plan, progress, exchange


def nodes_give_the_same(method: str) -> None:
    """Law 2: two nodes that keep their state in files give the metrics of one process, under mixed participation."""
    law = Comparison("2", method)
    own = small_settings(method).model_dump(mode="json")
    settings = resolve(method, {"data": WORLD, "seed": SEED, "rounds": ROUNDS, "settings": own})
    prepared = prepare(settings)
    plan = replace(prepared.plan, participation=Mixed())
    alone = run_rounds(prepared.runtime, plan, Progress(), lambda record, now: None)
    with tempfile.TemporaryDirectory() as place:
        rules = Rules(wait=0.01, attempts=1, least=1.0)
        made, _, progress, _ = federation(Path(place), settings, NODES, rules, plan=plan)
        apart = run_rounds(made, plan, progress, lambda record, now: None)
    law.metrics(alone, apart, f"over {NODES} nodes")
    for one, other in zip(alone.records, apart.records, strict=True):
        if one.participants != other.participants:
            raise law.broken(f"round {one.round} has {one.participants} clients, and {other.participants} over nodes")
