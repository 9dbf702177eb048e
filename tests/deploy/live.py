"""Real SuperLinks and SuperNodes on loopback, for tests."""

from __future__ import annotations

import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from fedrec.core.settings import build
from fedrec.deploy.flower.commands import Cluster, ServerFiles, Value, register
from fedrec.deploy.ports import free_ports
from fedrec.deploy.server.job import Job, read_served
from fedrec.deploy.server.rules import Rules
from fedrec.experiment.prepare import prepare
from fedrec.runs.folder import RunFolder
from fedrec.runs.settings import RunSettings

NODE = (str(Path(__file__).parent / "watched_node.py"),)
"""A node with a witness."""
PATIENCE = 600
"""Seconds until a test gives up waiting; a wait ends as soon as what it waits for is true."""


def start_cluster(
    folder: Path, nodes: int, keys: Path | None = None, database: bool = False, members: Path | None = None
) -> Cluster:
    """A SuperLink and nodes that each host a share of a run's data; with ``keys``, over TLS and registered.

    With ``members`` they take part in secure sums alone, with the keys that lie beside the others.
    """
    link_port, *ports = free_ports(1 + nodes)
    cluster = Cluster(folder / "flwr", link_port, None if keys is None else ServerFiles.below(keys), NODE)
    try:
        cluster.start_link(folder / "state.db" if database else None)
        for part, port in enumerate(ports):
            key = None
            if keys is not None:
                key = keys / f"node{part}"
                register(cluster.home, keys / f"node{part}.pub")
            config: dict[str, Value] = {
                "folder": str(folder / f"node{part}"),
                "part": part,
                "parts": nodes,
                "repeatable": True,
            }
            if members is not None:
                config |= {"members": str(members), "sums-key": str(members.with_name(f"node{part}.sums"))}
            cluster.start_node(f"node{part}", port, config, key)
    except BaseException:
        cluster.stop()
        raise
    return cluster


def new_run(
    folder: Path, settings: RunSettings, nodes: int, members: dict[str, Any] | None = None, **rules: Any
) -> RunFolder:
    """A run's folder as ``fedrec run --runtime flower`` makes it."""
    made = RunFolder.create(folder, settings)
    world = prepare(settings).people.world
    chosen = build(Rules, {"nodes": nodes, **rules}, "test")
    Job(chosen, world.n_items, world.name, own_data=False, members=members or {}).write(folder)
    return made


def wait(true: Callable[[], Any], what: str, cluster: Cluster | None = None) -> None:
    """Until something is true."""
    end = time.monotonic() + PATIENCE
    while not true():
        if time.monotonic() > end:
            logs = "" if cluster is None else "\n".join(cluster.crew.tail(n, 25) for n in cluster.crew.members)
            raise AssertionError(f"{what}: not after {PATIENCE} s\n{logs}")
        time.sleep(0.1)


def carry_out(cluster: Cluster, run: RunFolder) -> list[Any]:
    """Run to the end; the log of rounds."""
    cluster.start_run(run.path)

    def done() -> bool:
        return (read_served(run.path) or {}).get("state") in ("done", "failed")

    wait(lambda: done() or cluster.crew.members["run"].poll() is not None, "the run's end", cluster)
    said = read_served(run.path) or {}
    assert said.get("done"), f"{said}\n{cluster.crew.tail('run', 40)}"
    return run.records()
