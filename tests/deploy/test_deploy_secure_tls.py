"""Secure sums over TLS and real sockets: the plain run's metrics, nothing of a node's own, a node killed in a step."""

from __future__ import annotations

import json
import os
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from direct import in_process
from live import carry_out, new_run, start_cluster, wait
from without import clients_of

from fedrec.deploy.credentials import make_node, make_server
from fedrec.deploy.flower.commands import Cluster
from fedrec.deploy.members import FILE, collect_members, make_sums_key, read_members
from fedrec.experiment.prepare import prepare
from fedrec.experiment.resolve import resolve
from fedrec.methods.registry import federated, find
from fedrec.secure.messages import Kind

NODES = 4
EVERY = bool(os.environ.get("FEDREC_ALL_METHODS"))
SUMMED = [name for name in federated() if find(name).card.sum_suffices and name != "local"]
METHODS = SUMMED if EVERY else ["fedspectral"]
STEPS = list(Kind) if EVERY else []
"""All methods and a node killed in each step are tried in process; here when all is asked for (FEDREC_ALL_METHODS=1).

A killed node is let in again after a minute.
"""


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("secure")


@pytest.fixture(scope="module")
def cluster(folder: Path) -> Iterator[Cluster]:
    keys = folder / "keys"
    make_server(keys, ["fedrec.test"])
    public = []
    for part in range(NODES):
        make_node(keys, f"node{part}")
        public.append(make_sums_key(keys, f"node{part}", 100)[1])
    collect_members(public, keys / FILE)
    made = start_cluster(folder, NODES, keys, members=keys / FILE)
    try:
        yield made
    finally:
        made.stop()


def settings_of(method: str, **more: Any) -> Any:
    known = find(method).Settings.model_fields
    own = {key: value for key, value in {"epochs": 1, "dim": 4, "k": 4}.items() if key in known}
    given = {"data": "demo", "rounds": 1, "seed": 5, "secure_by": "nodes", "secure_dropout": 0.25, "settings": own}
    return resolve(method, {**given, "secure": True, **more})


def secure_run(folder: Path, settings: Any, **rules: Any) -> Any:
    return new_run(folder, settings, NODES, read_members(folder.parent / "keys" / FILE), **rules)


def plain(settings: Any) -> list[Any]:
    return in_process(settings.model_copy(update={"secure": False}))


def same(one: dict[str, Any], other: Any) -> None:
    assert one["participants"] == other.participants
    assert one["loss"] == pytest.approx(other.loss, rel=1e-5)
    assert one["valid"] == pytest.approx(other.valid, abs=1e-9)
    assert one["test"] == pytest.approx(other.test, abs=1e-9)


@pytest.mark.parametrize("method", METHODS)
def test_the_plain_run_in_sums(method: str, cluster: Cluster, folder: Path) -> None:
    more = {"secure_by": "clients", "secure_cohort": 6, "clients": 12} if method == "fedspectral" else {}
    settings = settings_of(method, **more)
    found = carry_out(cluster, secure_run(folder / f"run-{method}", settings, step=300.0))
    for one, other in zip(found, plain(settings), strict=True):
        same(one, other)
        assert not one["missing"]
        assert one["secure"]["smallest_cohort"] == (6 if more else NODES)


def test_no_node_says_anything_of_its_own(cluster: Cluster, folder: Path) -> None:
    kinds: set[str] = set()
    if not any(folder.glob("node*/witness/*-out.txt")):  # alone, without the runs above
        carry_out(cluster, secure_run(folder / "run-witness", settings_of("fcf")))
    for text in folder.glob("node*/witness/*-out.txt"):
        head = json.loads(text.read_text().removeprefix("head.json="))
        kinds.add(head["kind"])
        if head["kind"] == "answer":
            assert head["counts"] == []
            assert head["loss"] == 0
            assert head["valid"] == head["test"] == {"count": 0, "sums": {}}
    assert {"hello", "answer", "stepped"} <= kinds


@pytest.mark.parametrize("kind", STEPS)
def test_a_node_killed_in_a_step(kind: Kind, cluster: Cluster, folder: Path) -> None:
    # evaluated after local training: nobody is asked again once the sum is made
    settings = settings_of("fcf", rounds=1, protocol="paper-fedca", participation=1.0)
    run = secure_run(folder / f"run-{kind.name}", settings, step=15.0, attempts=1)
    held, hold = folder / "node1" / "held", folder / "node1" / f"hold-step-{int(kind)}"
    held.unlink(missing_ok=True)
    hold.touch()
    cluster.start_run(run.path)
    wait(held.exists, f"node1 in step {kind.name}", cluster)
    cluster.crew.kill("node1")
    hold.unlink()
    records = _end(cluster, run)
    own = len(clients_of(prepare(settings).people, 1, NODES))
    wanted = plain(settings)[0]
    assert records[0]["participants"] == wanted.participants - (own if kind <= Kind.INPUT else 0)
    assert any(line.startswith(f"node1: step {kind.name.lower()}") for line in records[0]["missing"])
    if kind > Kind.INPUT:
        assert records[0]["loss"] == pytest.approx(wanted.loss, rel=1e-5)
    if kind != STEPS[-1]:
        _come_back(cluster)


def _end(cluster: Cluster, run: Any) -> list[Any]:
    wait(lambda: len(run.records()) >= 1, "the round without node1", cluster)
    found: list[Any] = run.records()
    wait(lambda: cluster.crew.members["run"].poll() is not None, "the run's end", cluster)
    return found


def _come_back(cluster: Cluster) -> None:
    """Start the node again until the server lets it in: its predecessor must be missed first."""
    for _ in range(40):
        if _let_in(cluster):
            return
        time.sleep(5.0)
    raise AssertionError(cluster.crew.tail("node1", 20))


def _let_in(cluster: Cluster) -> bool:
    log = cluster.crew.log("node1")
    before = log.stat().st_size
    cluster.restart_node("node1")
    member = cluster.crew.members["node1"]
    wait(lambda: member.poll() is not None or b"SuperNode ID" in log.read_bytes()[before:], "node1", cluster)
    return member.poll() is None
