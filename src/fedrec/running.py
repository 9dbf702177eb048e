"""From settings to a finished run: data, protocol, method, runtime, loop, folder."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from fedrec.core.loop import Plan, Progress, Record, run_rounds
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
from fedrec.runs.folder import RunFolder
from fedrec.runs.plan import participation_of, plan_of
from fedrec.runs.recipes import recipe
from fedrec.runs.result import describe, summary
from fedrec.runs.settings import RunSettings

OnRound = Callable[[Record, Progress], None]


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


@dataclass
class Result:
    """A finished run: what ``--json`` writes, and a model that recommends."""

    json: dict[str, Any]
    prepared: Prepared
    folder: RunFolder | None
    per_user: dict[str, Any] | None = None

    @property
    def metrics(self) -> dict[str, float]:
        """Test metrics of the selected round."""
        return dict(self.json["metrics"]["test"])

    def recommend(self, user: str | int, k: int = 10) -> list[Any]:
        """The ``k`` best items for a user, none of which the user has."""
        from fedrec.recommending import recommend

        return recommend(self.prepared, user, k)


def resolve(method: str, given: dict[str, Any]) -> RunSettings:
    """Run settings: what the user gave, over the paper's recipe, over the method's defaults."""
    kind = find_method(method)
    protocol = find_protocol(given.get("protocol", "strict"))
    chosen = recipe(method, given.get("data", "demo"), protocol.name, given.get("settings"))
    own = {**chosen.settings, **given.pop("settings", {})}
    checked = build(kind.Settings, own, method).model_dump(mode="json")
    base: dict[str, Any] = {**chosen.run, **given}
    if issubclass(kind, Reference):
        if kind.one_shot and int(given.get("rounds", 1)) > 1:
            raise BadInput(f"{method} is fitted in one step; leave --rounds out, or give 1")
        base["rounds"] = given.get("rounds", kind.rounds)
    settings = build(RunSettings, {**base, "method": method, "settings": checked}, "run")
    participation_of(settings)  # impossible shares are found before any work
    return settings


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

    return Simulator(method, people, task, settings.seed, **options)


def execute(
    settings: RunSettings,
    out: Path | None = None,
    on_round: OnRound | None = None,
    on_start: Callable[[Prepared, Progress], None] | None = None,
) -> Result:
    """Run to the end; with ``out``, in a new folder that can be resumed."""
    prepared = prepare(settings)  # before the folder: bad input leaves nothing behind
    folder = RunFolder.create(out, settings) if out is not None else None
    return _carry_out(prepared, folder, Progress(), on_round, on_start)


def resume(
    path: Path,
    on_round: OnRound | None = None,
    on_start: Callable[[Prepared, Progress], None] | None = None,
) -> Result:
    """Continue a run from its last checkpoint; a finished one is only read."""
    folder = RunFolder.open(path)
    prepared = prepare(folder.settings())
    runtime = prepared.runtime
    if folder.finished:
        runtime.restore(folder.model(runtime.expected()))
        return Result(folder.result(), prepared, folder)
    over_flower = prepared.settings.runtime == "flower"  # there the server wrote the checkpoint, not the runtime
    progress = folder.restore(runtime.expected_of_server() if over_flower else runtime.expected())
    return _carry_out(prepared, folder, progress, on_round, on_start)


def opened(path: Path) -> Result:
    """A finished run, with its selected model."""
    folder = RunFolder.open(path)
    result = folder.result()
    prepared = prepare(folder.settings())
    seen, now = result["data"], data_of(prepared)
    if seen != now:
        raise BadInput(f"the data of {path} has changed since the run ({seen} then, {now} now)")
    prepared.runtime.restore(folder.model(prepared.runtime.expected()))
    return Result(result, prepared, folder)


def _carry_out(
    prepared: Prepared,
    folder: RunFolder | None,
    progress: Progress,
    on_round: OnRound | None,
    on_start: Callable[[Prepared, Progress], None] | None,
) -> Result:
    settings, runtime = prepared.settings, prepared.runtime
    if on_start:
        on_start(prepared, progress)

    def after(record: Record, now: Progress) -> None:
        if folder is not None:
            folder.append(record)
            folder.checkpoint_if_due(now, runtime.snapshot, settings.checkpoint_seconds)
        if on_round:
            on_round(record, now)

    if settings.runtime == "flower":  # the same loop, inside Flower's server process
        progress = runtime.carry_out(folder, on_round)
    else:
        run_rounds(runtime, prepared.plan, progress, after)
    if progress.best_state is not None:
        runtime.restore(progress.best_state)
    result = summarise(prepared, progress)
    if folder is not None:
        folder.finish(result, progress.best_state, progress.best_per_user, prepared.task.data.user_ids)
    return Result(result, prepared, folder, progress.best_per_user)


def summarise(prepared: Prepared, progress: Progress) -> dict[str, Any]:
    """The one object that ``--json`` writes."""
    exposure = getattr(prepared.runtime, "exposure", None)
    return summary(prepared.settings, prepared.method, data_of(prepared), progress, prepared.seconds, exposure)


def data_of(prepared: Prepared) -> dict[str, Any]:
    """What the result says of the data."""
    return describe(prepared.people.world, len(prepared.task.data))


def check_device(device: str) -> None:
    """A device that is not there is bad input."""
    if device == "cuda":
        import torch

        if not torch.cuda.is_available():
            raise BadInput("no CUDA device is available on this machine; use --device cpu")


def per_user_array(result: Result, metric: str) -> Any:
    """Test values of one metric for every user, in the data's order."""
    if result.per_user is not None:
        return np.asarray(result.per_user[metric])
    table = result.folder.per_user() if result.folder else None
    return None if table is None else table[metric].to_numpy()
