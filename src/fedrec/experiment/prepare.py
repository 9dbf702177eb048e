"""All that a run needs before its first round: data, protocol, method, runtime."""

from __future__ import annotations

import time
from dataclasses import dataclass
from typing import Any

from fedrec.core.loop import Plan
from fedrec.core.method import Method
from fedrec.core.population import Population, population
from fedrec.core.reference import Reference
from fedrec.core.settings import build
from fedrec.data.load import load
from fedrec.data.partition import partition
from fedrec.errors import BadInput
from fedrec.evaluation.protocols import find as find_protocol
from fedrec.evaluation.task import Task
from fedrec.methods.registry import find as find_method
from fedrec.runs.plan import defence_of, plan_of
from fedrec.runs.settings import RunSettings


@dataclass
class Prepared:
    """Everything a run needs before its first round."""

    settings: RunSettings
    task: Task
    people: Population
    method: Method[Any, Any, Any, Any] | Reference[Any]
    runtime: Any
    seconds: float

    @property
    def plan(self) -> Plan:
        """The rounds that the settings and the protocol ask for."""
        return plan_of(self.settings, self.task.protocol, self.method)


def prepare(settings: RunSettings) -> Prepared:
    """Load and split the data, build the method and its runtime."""
    began = time.perf_counter()
    protocol = find_protocol(settings.protocol)
    kind = find_method(settings.method, settings.settings)
    data = load(
        settings.data,
        settings.data_dir,
        min_interactions=settings.min_interactions,
        paper=protocol.paper,
        columns=settings.columns,
        min_rating=settings.min_rating,
    )
    if settings.clients is not None:
        data = partition(data, settings.clients)
    task = protocol.prepare(data, settings.seed, settings.train_share)
    people = population(task)
    method = kind(build(kind.Settings, settings.settings, settings.method), settings.device)
    check_device(settings.device)
    runtime = make_runtime(settings, method, people, task)
    return Prepared(settings, task, people, method, runtime, time.perf_counter() - began)


def make_runtime(settings: RunSettings, method: Any, people: Population, task: Task) -> Any:
    """The runtime that the settings ask for."""
    options: dict[str, Any] = {"memory_mb": settings.memory_mb, "evaluate_users": settings.evaluate_users}
    if isinstance(method, Reference):
        from fedrec.simulate.central import CentralRun

        if settings.runtime == "flower":
            raise BadInput(f"{method.name} is centralised: there is nothing to federate; leave --runtime out")
        return CentralRun(method, people, task, settings.seed, **options)
    if settings.runtime == "flower":
        from fedrec.deploy.loopback import Loopback

        return Loopback(method, people, task, settings.seed, settings)
    from fedrec.simulate.runtime import Simulator

    return Simulator(method, people, task, settings.seed, robust=defence_of(settings), **options)


def check_device(device: str) -> None:
    """A device that is not there is bad input."""
    if device == "cuda":
        import torch

        if not torch.cuda.is_available():
            raise BadInput("no CUDA device is available on this machine; use --device cpu")
