"""All that a run needs before its first round: data, protocol, method, runtime."""

from __future__ import annotations

import time
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from fedrec.core.loop import Plan
from fedrec.core.method import Method
from fedrec.core.population import Population, population
from fedrec.core.reference import Reference
from fedrec.core.settings import build
from fedrec.data.filters import replicate
from fedrec.data.fingerprint import Fingerprint, fingerprint
from fedrec.data.interactions import Interactions
from fedrec.data.load import load
from fedrec.data.partition import partition
from fedrec.errors import BadInput
from fedrec.evaluation.choosing import refuse_nothing_to_choose_on
from fedrec.evaluation.protocols import find as find_protocol
from fedrec.evaluation.task import PARTS, Task
from fedrec.methods.registry import find as find_method
from fedrec.privacy.summed import Budget
from fedrec.runs.origin import Origin
from fedrec.runs.plan import defence_of, participation_of, plan_of
from fedrec.runs.result import describe
from fedrec.runs.settings import RunSettings
from fedrec.threads import thread_count


@dataclass
class Prepared:
    """Everything a run needs before its first round."""

    settings: RunSettings
    task: Task
    people: Population
    method: Method[Any, Any, Any, Any] | Reference[Any]
    runtime: Any
    seconds: float
    origin: Origin | None = None
    """Which run it goes on from, where it is an update."""

    @cached_property
    def fingerprint(self) -> Fingerprint:
        """Of the data as it was spread over clients."""
        return fingerprint(self.task.data)

    @property
    def described(self) -> dict[str, Any]:
        """What the result says of the data."""
        return describe(self.people.world, len(self.task.data))

    @property
    def plan(self) -> Plan:
        """The rounds that the settings and the protocol ask for."""
        return plan_of(self.settings, self.task.protocol, self.method)


def prepare(settings: RunSettings, shared: tuple[Task, Population] | None = None) -> Prepared:
    """Load and split the data, build the method and its runtime.

    ``shared``: what :func:`split_data` gave for a run with the same data, split and seed.
    """
    began = time.perf_counter()
    thread_count()  # where what the environment says is no number, nothing is begun
    kind = find_method(settings.method, settings.settings)
    task, people = split_data(load_data(settings), settings) if shared is None else shared
    method = kind(build(kind.Settings, settings.settings, settings.method), settings.device)
    check_device(settings.device)
    runtime = make_runtime(settings, method, people, task)
    return Prepared(settings, task, people, method, runtime, time.perf_counter() - began)


READING = ("min_interactions", "columns", "min_rating")
"""Settings that say how a file or table is read."""
ASKED = ("data", "data_dir", "protocol", "seed", "train_share", "clients", "spread", "copies", "test", *READING)
"""Settings that decide which data a run sees."""


def load_data(settings: RunSettings, table: Any = None) -> Interactions:
    """The data that a run asks for, or a table in its place; what was loaded already stays as it is."""
    if isinstance(table, Interactions):
        late = [name for name in READING if getattr(settings, name) is not None]
        if late:
            raise BadInput(f"{', '.join(late)}: this data is loaded already; give it to fedrec.load instead")
        return table
    return load(
        settings.data if table is None else table,
        settings.data_dir,
        min_interactions=settings.min_interactions,
        paper=find_protocol(settings.protocol).paper,
        columns=settings.columns,
        min_rating=settings.min_rating,
    )


def split_data(data: Interactions, settings: RunSettings) -> tuple[Task, Population]:
    """The data under the protocol, and who has it."""
    protocol = find_protocol(settings.protocol)
    if not settings.test and protocol.selection.part == "test":
        raise BadInput(f"{protocol.name} chooses the round on the test part; leave --no-test out, or take strict")
    data = replicate(data, settings.copies)
    if settings.clients is None and settings.spread != "random":
        raise BadInput(
            "--spread says how --clients spreads users; add --clients with their number, or leave --spread out"
        )
    if settings.clients is not None:
        data = partition(data, settings.clients, spread=settings.spread)
    task = protocol.prepare(data, settings.seed, settings.train_share)
    refuse_nothing_to_choose_on(task, settings.data)
    return task, population(task)


class SharedData:
    """The last run's data, for the next one that wants the same; nothing else is held."""

    def __init__(self) -> None:
        self._asked = ""
        self._made: tuple[Task, Population] | None = None

    def of(self, settings: RunSettings) -> tuple[Task, Population]:
        """What :func:`prepare` takes as ``shared``."""
        asked = settings.model_dump_json(include=set(ASKED))
        if self._made is None or asked != self._asked:
            self._made = None  # before the next is loaded: two would be twice the memory
            self._made, self._asked = split_data(load_data(settings), settings), asked
        return self._made


def make_runtime(settings: RunSettings, method: Any, people: Population, task: Task) -> Any:
    """The runtime that the settings ask for."""
    options: dict[str, Any] = {
        "memory_mb": settings.memory_mb,
        "evaluate_users": settings.evaluate_users,
        "parts": PARTS if settings.test else PARTS[:1],
    }
    if isinstance(method, Reference):
        from fedrec.simulate.central import CentralRun

        if settings.runtime == "flower":
            raise BadInput(f"{method.name} is centralised: there is nothing to federate; leave --runtime out")
        return CentralRun(method, people, task, settings.seed, **options)
    if settings.runtime == "flower":
        from fedrec.deploy.loopback import Loopback

        if not settings.test:
            raise BadInput("--no-test works only in process; leave --no-test or --runtime flower out")
        if settings.copies != 1:
            raise BadInput("each node holds a user only once; leave --copies or --runtime flower out")
        return Loopback(method, people, task, settings.seed, settings)
    if settings.node_sums:
        raise BadInput("--node-sums is about what nodes send; give --runtime flower as well, or leave it out")
    if settings.secure:
        from fedrec.simulate.private import PrivateSimulator
        from fedrec.simulate.secured import SecureOptions, SecureSimulator

        given = (method, people, task, settings.seed, SecureOptions.of(settings))
        if settings.epsilon is None:
            return SecureSimulator(*given, **options)
        budget = Budget(settings.epsilon, settings.delta)
        return PrivateSimulator(*given, budget, settings.rounds, participation_of(settings), **options)
    from fedrec.simulate.runtime import Simulator

    return Simulator(method, people, task, settings.seed, robust=defence_of(settings), **options)


def check_device(device: str) -> None:
    """A device that is not there is bad input."""
    if device == "cuda":
        import torch

        if not torch.cuda.is_available():
            raise BadInput("no CUDA device is available on this machine; use --device cpu")
