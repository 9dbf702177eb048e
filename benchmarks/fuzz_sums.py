"""Damaged letters of secure sums, to nodes and to the server, in every step.

Each input is one whole sum of four nodes in which one letter of one of them is damaged, on its way there or back. It
must end with the exact sum of those that are in it, or with a clean failure.
"""

from __future__ import annotations

import random
import warnings
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import numpy as np

from fedrec.core.misfit import Misfit
from fedrec.deploy.messages.envelope import fault_in, pack_step, unpack_stepped
from fedrec.deploy.messages.letters import Fault, Step, Stepped
from fedrec.deploy.node.node import Node
from fedrec.deploy.node.summing import STATE
from fedrec.deploy.node.worker import Worker
from fedrec.deploy.server import cohort_sum
from fedrec.deploy.server.rules import Rules
from fedrec.deploy.server.summing import SecureFederation
from fedrec.experiment.resolve import resolve
from fedrec.laws.nodes import RUN, DirectExchange, federation
from fedrec.secure.aggregator import Aggregator
from fedrec.secure.course import Costs
from fedrec.secure.failures import SecureFailure
from fedrec.secure.plan import Plan
from fedrec.secure.ring import Integers
from fuzz_messages import REFUSALS, damaged, opened
from fuzz_runner import Outcome

CLEAN = (*REFUSALS, SecureFailure)
NODES = 4


class Unclean(BaseException):
    """What the server's guard around a message would hide."""


class Strict(Aggregator):
    """A server that says when a message does something else than being refused."""

    def receive(self, message: bytes) -> str:
        try:
            return super().receive(message)
        except (*CLEAN, Misfit):
            raise
        except Exception as problem:
            raise Unclean(f"{type(problem).__name__}: {problem}") from problem


class Sums:
    """See the module."""

    def __init__(self) -> None:
        self.doing = ""

    def prepare(self, folder: Path) -> None:
        warnings.simplefilter("ignore")
        given = {
            "data": "scale:users=16,items=20,interactions=120", "clients": 8, "rounds": 1, "secure": True,
            "secure_by": "nodes", "secure_dropout": 0.25, "settings": {"dim": 2, "epochs": 1},
        }  # fmt: skip
        rules = Rules(wait=0.01, attempts=1, least=0.5)
        server, _, _, self.exchange = federation(folder, resolve("fedavg", given), NODES, rules)
        assert isinstance(server, SecureFederation)
        plans: list[bytes] = []

        def between(name: str, step: Step, work: Callable[[], Stepped]) -> Stepped:
            plans.extend(step.contents.values() if not step.step else ())
            return work()

        self.exchange.between = between
        server._exchange(np.arange(8), train=1)
        self.directory, self.plan = server.directory, Plan.from_bytes(plans[0])
        self.workers = {name: Worker(options) for name, options in self.exchange.options.items()}
        self.vectors: dict[str, Integers] = {}
        for name, options in self.exchange.options.items():
            summing = Node(options, RUN).summing
            self.vectors[name] = summing._vector(self.plan, name, summing._waiting()[0].get(name, {}))

    def attempt(self, draw: random.Random) -> Outcome:
        module: Any = cohort_sum
        usual, module.Aggregator = module.Aggregator, Strict
        try:
            return self._attempt(draw)
        finally:
            module.Aggregator = usual

    def _attempt(self, draw: random.Random) -> Outcome:
        for worker in self.workers.values():
            worker.nodes.clear()
            Node(worker.options, RUN).store.write_json(STATE, {})
        module: Any = cohort_sum  # a way without `send`: only steps are taken
        way = Way(self.workers, self.exchange, draw, self._note)
        self.doing = way.label
        faults: dict[str, str] = {}
        try:
            found = module.sum_cohort(self.plan, self.directory, way, 1.0, Costs(), faults)
        except SecureFailure:
            return "refused"
        except Unclean as problem:
            raise AssertionError(str(problem)) from problem
        wanted = sum(self.vectors[name] for name in found.survivors)
        if not np.array_equal(found.total, wanted):
            raise AssertionError("a wrong sum was taken for right")
        if set(self.vectors) - set(found.survivors) - {way.target}:
            raise AssertionError("a sound node was left out")
        return "refused" if faults else "accepted"

    def _note(self, what: str) -> None:
        self.doing += f" {what}"


class Way:
    """Between server and nodes; one letter of one of them is damaged."""

    def __init__(
        self,
        workers: Mapping[str, Worker],
        exchange: DirectExchange,
        draw: random.Random,
        note: Callable[[str], None],
    ) -> None:
        self.workers, self.exchange, self.draw, self.note = workers, exchange, draw, note
        self.target, self.kind = draw.choice(sorted(workers)), draw.randrange(5)
        self.there = draw.random() < 0.5
        self.label = f"step {self.kind} {'to' if self.there else 'from'} a node"

    def step(self, steps: Mapping[str, Step], deadline: float) -> dict[str, Stepped | Fault]:
        return {name: self._answer(name, step) for name, step in sorted(steps.items())}

    def _answer(self, name: str, step: Step) -> Stepped | Fault:
        here = name == self.target and step.step == self.kind
        letter: Any = pack_step(step)
        try:
            if here and self.there:
                letter = opened(damaged(letter, self.draw, self.note))
            reply: Any = self.workers[name]._handle(letter)
            if here and not self.there:
                reply = opened(damaged(reply, self.draw, self.note))
            return fault_in(reply) or unpack_stepped(reply)
        except CLEAN as problem:
            return Fault(type(problem).__name__)
