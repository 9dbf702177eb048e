"""A run on the server: meet the nodes, run the rounds, write the run's folder.

Killed at any moment, it goes on from its last round when it is started again on the same folder.
"""

from __future__ import annotations

import json
import logging
import time
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

from fedrec.core.loop import Plan, Progress, Record, run_rounds
from fedrec.data.ragged import Int64
from fedrec.deploy.messages.letters import Hello, Meet
from fedrec.deploy.node.node import method_of
from fedrec.deploy.server.federation import Federation, snapshot_of
from fedrec.deploy.server.job import ATTEMPTS, Job, read_attempts, write_attempts, write_served
from fedrec.deploy.server.node_sums import NodeSums
from fedrec.deploy.server.roster import Roster
from fedrec.deploy.server.summing import SecureFederation
from fedrec.evaluation.protocols import find as find_protocol
from fedrec.keyed import U64
from fedrec.runs.folder import RunFolder
from fedrec.runs.plan import defence_of, plan_of
from fedrec.runs.result import card_of, describe, summary
from fedrec.runs.settings import RunSettings

log = logging.getLogger("fedrec.deploy")

COURTESY = 120.0
"""Seconds in which nodes say that they have heard of the selected round; the run is over, nothing waits for it."""


class NodesMissing(RuntimeError):
    """Not enough nodes came in time."""


def serve(path: Path, connect: Callable[[Meet, float], Any]) -> None:
    """Carry a run out; ``connect`` makes the exchange. What went wrong is written for who waits."""
    write_served(path, done=False, state="waiting for nodes")
    try:
        _serve(path, connect)
    except KeyboardInterrupt:
        write_served(path, done=False, state="stopped")
        raise
    except Exception as problem:
        write_served(path, done=False, state="failed", reason=f"{type(problem).__name__}: {problem}")
        raise


def _serve(path: Path, connect: Callable[[Meet, float], Any]) -> None:
    began = time.perf_counter()
    folder = RunFolder.open(path)
    folder.seal_settings()  # of 0.1.0, before a job with a checksum stands beside them
    settings, job = folder.settings(), Job.read(path)
    plain = settings.model_dump(mode="json", exclude={"data_dir"})
    exchange = connect(Meet(job.run, json.dumps(plain), job.catalogue), job.rules.poll)
    if job.roster is None:
        later = exchange.meet_seconds
        exchange.meet_seconds = max(later, job.rules.deadline)  # who reads a large file takes longer
        job = replace(job, roster=Roster.of(gather_nodes(exchange, job.rules.nodes, job.rules.wait)))
        exchange.meet_seconds = later  # rounds do not wait as long for who comes later
        job.write(path)
    exchange.patient = False
    assert job.roster is not None
    roster: Roster = job.roster
    exchange.expected = lambda hello: (place := roster.find(hello.name)) is None or hello.hosts_as(place)
    exchange.hellos = {i: hello for i, hello in exchange.hellos.items() if exchange.expected(hello)}

    method = method_of(settings)
    progress = Progress()
    plan = plan_of(settings, find_protocol(settings.protocol), method)
    runtime = kind_for(settings)(
        method,
        roster.world(job.data_name, job.n_items),
        roster,
        exchange,
        job.rules,
        job.run,
        settings.seed,
        upcoming(plan),
        find_protocol(settings.protocol).metrics,
        lambda: progress.best_round,
        defence_of(settings),
    )

    def joined(now: Roster) -> None:
        nonlocal roster
        replace(job, roster=now).write(path)  # before anybody is asked: a server that comes back knows them
        roster = now

    if isinstance(runtime, SecureFederation):  # who takes part in secure sums was agreed on out of band
        runtime.with_members(settings, job.members)
        runtime.begun |= read_attempts(path)
        runtime.beginning = partial(write_attempts, path, runtime.begun)
    else:
        runtime.arrivals = lambda: [hello for hello in exchange.hellos.values() if roster.find(hello.name) is None]
        runtime.joined = joined
    progress = folder.restore(snapshot_of(runtime.server))
    prepared = time.perf_counter() - began
    write_served(path, done=False, state="running")

    def after(record: Record, now: Progress) -> None:
        folder.checkpoint(now, runtime.snapshot())  # every round: nodes keep two, so the server must not lag
        folder.append(record)

    run_rounds(runtime, plan, progress, after)
    (path / ATTEMPTS).unlink(missing_ok=True)
    if job.own_data:
        for name, fault in exchange.select(progress.best_round, min(COURTESY, job.rules.deadline)).items():
            log.warning("%s does not know the selected round: %s", name, fault.reason)
        data = describe(runtime.world, interactions=None)  # nobody but the nodes knows how many
        best = progress.best_state
        model = None if best is None else {"server": best["server"]}  # private state is on the nodes
        folder.finish(summary(settings, method, data, progress, prepared, runtime), model, None, None)
    stated = card_of(settings, method, progress.records, runtime)
    write_served(path, done=True, state="done", prepare=prepared, card=stated.as_dict())


def kind_for(settings: RunSettings) -> type[Federation]:
    """Which kind of federation the settings ask for: uploads one by one, sums of nodes, or secure sums."""
    if settings.secure:
        return SecureFederation
    return NodeSums if settings.node_sums else Federation


def gather_nodes(exchange: Any, wanted: int, seconds: float) -> list[Hello]:
    """Wait until enough nodes are there."""
    end = time.monotonic() + seconds
    while len(here := exchange.online()) < wanted:  # which may take longer than the wait: who is there then counts
        if time.monotonic() > end:
            names = ", ".join(sorted(here)) or "none"
            raise NodesMissing(f"{wanted} nodes are needed; after {seconds:g} s there are: {names}")
        time.sleep(0.5)
    return list(exchange.hellos.values())


def upcoming(plan: Plan) -> Callable[[int, U64], Int64 | None]:
    """Who of some clients answers in a round; None behind the last one."""

    def answering(number: int, keys: U64) -> Int64 | None:
        if number > plan.rounds:
            return None
        chosen = plan.participation.choose(plan.seed, number, keys)
        return plan.participation.answering(plan.seed, number, keys, chosen)

    return answering
