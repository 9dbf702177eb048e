"""A node is killed in the middle of a round and comes back; then the server is killed and comes back."""

from __future__ import annotations

from pathlib import Path

import pytest
from live import carry_out, new_run, start_cluster, wait
from without import clients_of, in_process_without

from fedrec.deploy.processes import listening, marked
from fedrec.experiment.prepare import prepare
from fedrec.experiment.resolve import resolve

NODES, ROUNDS = 2, 6  # rounds enough for a node to come back in


def test_killed_node_and_killed_server(tmp_path: Path) -> None:
    settings = resolve("fedavg", {"data": "demo", "rounds": ROUNDS, "seed": 1, "settings": {"epochs": 1, "dim": 4}})
    run = new_run(tmp_path / "run", settings, NODES, deadline=25.0)
    held, hold = tmp_path / "node1" / "held", tmp_path / "node1" / "hold-2"
    hold.parent.mkdir()
    hold.touch()
    cluster = start_cluster(tmp_path, NODES, database=True)
    try:
        cluster.start_run(run.path)
        wait(held.exists, 180, "node1 in round 2", cluster)
        cluster.crew.kill("node1")  # SIGKILL, in the middle of its work
        hold.unlink()
        wait(lambda: len(run.records()) >= 1, 180, "a round without node1", cluster)
        cluster.restart_node("node1")
        wait(lambda: len(run.records()) >= 2, 180, "round 2", cluster)
        cluster.crew.kill("run")
        cluster.crew.kill("superlink")  # and with it the server's process
        assert len(run.records()) < ROUNDS
        cluster.start_link(tmp_path / "state.db")
        records = carry_out(cluster, run, 300)
    finally:
        cluster.stop()
    assert not marked(cluster.crew.tag)
    assert not listening(cluster.link_port)

    away = {r["round"]: clients_of(prepare(settings).people, 1, NODES) for r in records if r["missing"]}
    assert 2 in away, "node1 was not missed in the round in which it was killed"
    assert all(line.startswith("node1: ") for r in records for line in r["missing"])
    assert not records[-1]["missing"], "node1 was not taken back"
    wanted = in_process_without(settings, away)
    assert [r["participants"] for r in records] == [r.participants for r in wanted]
    assert [r["loss"] for r in records] == pytest.approx([r.loss for r in wanted], rel=1e-5)
    assert records[-1]["valid"] == pytest.approx(wanted[-1].valid, abs=1e-9)
    assert records[-1]["test"] == pytest.approx(wanted[-1].test, abs=1e-9)
