"""A node is killed in the middle of a round and comes back; then the server is killed and comes back."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from live import new_run, start_cluster, wait
from without import clients_of, in_process_without

from fedrec.deploy.flower.grid import LEFT
from fedrec.deploy.ports import listening
from fedrec.deploy.processes import marked
from fedrec.experiment.prepare import prepare
from fedrec.experiment.resolve import resolve

NODES, ROUNDS = 2, 500  # more rounds than a node needs to come back, however slow the machine


def left_out(missing: list[str], people: Any) -> Any:
    """The clients of the nodes that a round names as missing; a slow machine may miss more than the killed one."""
    lines = [line.split(": ", 1) for line in missing]
    reasons = {reason for _, reason in lines}
    assert all(r in ("not connected", LEFT) or r.startswith("no answer within") for r in reasons), missing
    return np.concatenate([clients_of(people, int(name.removeprefix("node")), NODES) for name, _ in lines])


def present(record: Any) -> bool:
    return not any(line.startswith("node1: ") for line in record["missing"])


def taken_back(records: list[Any]) -> bool:
    return any(present(record) for record in records[2:])


def test_killed_node_and_killed_server(tmp_path: Path) -> None:
    settings = resolve("fedavg", {"data": "demo", "rounds": ROUNDS, "seed": 1, "settings": {"epochs": 1, "dim": 4}})
    run = new_run(tmp_path / "run", settings, NODES, deadline=45.0)
    held, hold = tmp_path / "node1" / "held", tmp_path / "node1" / "hold-2"
    hold.parent.mkdir()
    hold.touch()
    cluster = start_cluster(tmp_path, NODES, database=True)
    try:
        cluster.start_run(run.path)
        wait(held.exists, "node1 in round 2", cluster)
        cluster.crew.kill("node1")  # SIGKILL, in the middle of its work
        hold.unlink()
        wait(lambda: len(run.records()) >= 1, "a round without node1", cluster)
        cluster.restart_node("node1")
        wait(lambda: len(run.records()) >= 2, "round 2", cluster)
        cluster.crew.kill("run")
        cluster.crew.kill("superlink")  # and with it the server's process
        assert len(run.records()) < ROUNDS
        cluster.start_link(tmp_path / "state.db")
        cluster.start_run(run.path)
        wait(lambda: taken_back(run.records()), "node1 taken back", cluster)
    finally:
        cluster.stop()
    assert not marked(cluster.crew.tag)
    assert not listening(cluster.link_port)

    records = run.records()
    away = {r["round"]: left_out(r["missing"], prepare(settings).people) for r in records if r["missing"]}
    assert not present(records[1]), "node1 was not missed in the round in which it was killed"
    wanted = in_process_without(settings.model_copy(update={"rounds": len(records)}), away)
    assert [r["participants"] for r in records] == [r.participants for r in wanted]
    assert [r["loss"] for r in records] == pytest.approx([r.loss for r in wanted], rel=1e-5)
    assert records[-1]["valid"] == pytest.approx(wanted[-1].valid, abs=1e-9)
