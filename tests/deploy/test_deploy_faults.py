"""A node is killed in the middle of a round and comes back; then the server is killed and comes back."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from live import carry_out, new_run, start_cluster, wait
from without import clients_of, in_process_without

from fedrec.deploy.flower.grid import LEFT
from fedrec.deploy.processes import listening, marked
from fedrec.experiment.prepare import prepare
from fedrec.experiment.resolve import resolve

NODES, ROUNDS = 2, 6  # rounds enough for a node to come back in


def left_out(missing: list[str], people: Any) -> Any:
    """The clients of the nodes that a round names as missing; a slow machine may miss more than the killed one."""
    lines = [line.split(": ", 1) for line in missing]
    reasons = {reason for _, reason in lines}
    assert all(r in ("not connected", LEFT) or r.startswith("no answer within") for r in reasons), missing
    return np.concatenate([clients_of(people, int(name.removeprefix("node")), NODES) for name, _ in lines])


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
        records = carry_out(cluster, run)
    finally:
        cluster.stop()
    assert not marked(cluster.crew.tag)
    assert not listening(cluster.link_port)

    away = {r["round"]: left_out(r["missing"], prepare(settings).people) for r in records if r["missing"]}
    without = {r["round"] for r in records for line in r["missing"] if line.startswith("node1: ")}
    assert 2 in without, "node1 was not missed in the round in which it was killed"
    assert any(r["round"] not in without for r in records[2:]), "node1 was not taken back"
    wanted = in_process_without(settings, away)
    assert [r["participants"] for r in records] == [r.participants for r in wanted]
    assert [r["loss"] for r in records] == pytest.approx([r.loss for r in wanted], rel=1e-5)
    assert records[-1]["valid"] == pytest.approx(wanted[-1].valid, abs=1e-9)
    assert records[-1]["test"] == pytest.approx(wanted[-1].test, abs=1e-9)
