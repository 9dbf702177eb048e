"""Nodes over TLS with node authentication: law 2, what crosses the wire, who is refused."""

from __future__ import annotations

import json
import os
import socket
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from direct import in_process
from live import carry_out, new_run, start_cluster

from fedrec.core import wire
from fedrec.deploy.credentials import make_node, make_server
from fedrec.deploy.flower.commands import NODE, Cluster, node_command
from fedrec.deploy.flower.knocking import turned_away
from fedrec.deploy.flower.tasks import Link
from fedrec.deploy.node.node import Node
from fedrec.deploy.node.share import NodeOptions
from fedrec.deploy.ports import free_ports, listening
from fedrec.deploy.processes import marked
from fedrec.experiment.resolve import resolve
from fedrec.methods.registry import federated, find
from found_methods import find_federated

NODES = 4 if os.environ.get("FEDREC_ALL_METHODS") else 2
"""Four when all is asked for; what four nodes give is tried for every method without a network."""
ALWAYS = ("fedavg", "fcf", "local")
"""Over real sockets in every test run; the others when FEDREC_ALL_METHODS is set."""


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("federation")


@pytest.fixture(scope="module")
def cluster(folder: Path) -> Iterator[Cluster]:
    make_server(folder / "keys", ["fedrec.test"])
    for part in range(NODES):
        make_node(folder / "keys", f"node{part}")
    made = start_cluster(folder, NODES, folder / "keys")
    try:
        yield made
    finally:
        made.stop()
    assert not marked(made.crew.tag), "a process was left running"
    assert not listening(made.link_port)


def settings_of(method: str) -> Any:
    known = find(method).Settings.model_fields
    own = {key: value for key, value in {"epochs": 1, "dim": 4}.items() if key in known}
    rounds = 2 if method == "fedavg" else 1
    return resolve(method, {"data": "demo", "rounds": rounds, "seed": 5, "settings": own})


@pytest.mark.parametrize("method", federated())
def test_same_metrics_as_in_process(method: str, cluster: Cluster, folder: Path) -> None:
    if method not in ALWAYS and not os.environ.get("FEDREC_ALL_METHODS"):
        pytest.skip("set FEDREC_ALL_METHODS=1 to run every method over real sockets")
    settings = settings_of(method)
    found = carry_out(cluster, new_run(folder / f"run-{method}", settings, NODES))
    wanted = in_process(settings)
    assert not any(record["missing"] for record in found)
    for one, other in zip(found, wanted, strict=True):
        assert one["participants"] == other.participants
        assert one["loss"] == pytest.approx(other.loss, rel=1e-5)
        assert one["valid"] == pytest.approx(other.valid, abs=1e-9)
        assert one["test"] == pytest.approx(other.test, abs=1e-9)
        assert one["bytes"] == pytest.approx(other.bytes, rel=0.01)


HEADS = {
    "meet": {"kind", "run", "settings", "challenge"},
    "hello": {"kind", "name"},
    "ask": {"kind", "run", "world", "first", "base", "selected", "evaluate", "train", "local", "whole"},
    "answer": {"kind", "counts", "loss", "valid", "test"},
}
BLOCKS = {"meet": {"catalogue"}, "hello": {"client_keys", "users", "proof"}, "ask": {"positions", "download"}}


def test_what_crosses_is_uploads_and_sums(cluster: Cluster, folder: Path) -> None:
    """Every message that the nodes received and sent in the tests above, taken apart."""
    seen: set[str] = set()
    for part in range(NODES):
        witness = folder / f"node{part}" / "witness"
        everything = b"".join(path.read_bytes() for path in sorted(witness.iterdir()))
        for text in witness.glob("*.txt"):
            (line,) = text.read_text().splitlines()
            assert line.startswith("head.json=")
            head = json.loads(line.removeprefix("head.json="))
            kind = head["kind"]
            seen.add(kind)
            assert set(head) == HEADS[kind]
            blocks = {p.stem.rpartition("-")[2]: p.read_bytes() for p in witness.glob(f"{text.stem}-blocks-*.bin")}
            if kind == "answer":
                assert set(blocks) == {f"upload{i}" for i in range(len(head["counts"]))}
                for sums in (head["valid"], head["test"]):
                    assert set(sums) == {"count", "sums"}
                    assert len(sums["sums"]) < 40  # a number for each metric, none for a user
            else:
                assert set(blocks) == BLOCKS[kind]
        users, vectors = private_things(folder, part)
        for secret in users + vectors:
            assert secret not in everything
    assert seen == set(HEADS)


@pytest.mark.skipif("FEDREC_ALL_METHODS" in os.environ, reason="knows the uploads of three methods")
def test_uploads_hold_the_methods_fields_only(cluster: Cluster, folder: Path) -> None:
    kinds = {find_federated(method).Upload for method in ALWAYS}
    answers = 0
    for path in folder.glob("node*/witness/*-out-blocks-upload*.bin"):
        data = path.read_bytes()
        header = json.loads(data[8 : 8 + int.from_bytes(data[:8], "little")])
        (kind,) = [k for k in kinds if decodes(k, data)]
        fields = {name.partition(".")[0].partition("[")[0] for name in header if name != "__metadata__"}
        assert fields <= set(kind.__dataclass_fields__)
        answers += 1
    assert answers == NODES * (2 + 1 + 1)


def decodes(kind: type[Any], data: bytes) -> bool:
    try:
        wire.decode(kind, data)
    except wire.WireError:
        return False
    return True


def private_things(folder: Path, part: int) -> tuple[list[bytes], list[bytes]]:
    """Ids of a node's users, and the users' vectors, as they would look in a message."""
    node_folder = folder / f"node{part}"
    users: list[bytes] = []
    vectors: list[bytes] = []
    for job in node_folder.glob("*/job.json"):
        node = Node(NodeOptions(f"node{part}", node_folder, part=part, parts=NODES), job.parent.name)
        users += [user.encode() for user in node.names.users]
        for state in node.store.path.glob("state-*.safetensors"):
            vectors += [np.ascontiguousarray(row).tobytes() for row in node.private(state.name).users]
    assert users
    assert vectors
    return users, vectors


def stays_out(cluster: Cluster, name: str, link: Link, key: Path | None, folder: Path, seconds: float = 30.0) -> str:
    """Start one more node; it must not become part of the federation. Returns its log."""
    own = {"folder": str(folder / name)}
    command = node_command(folder / f"{name}.toml", name, own, link, free_ports(1)[0], key, NODE)
    member = cluster.crew.start(name, command)
    end = time.monotonic() + seconds
    while member.poll() is None and time.monotonic() < end and "retrying" not in cluster.crew.log(name).read_text():
        time.sleep(0.2)
    log = cluster.crew.log(name).read_text()
    cluster.crew.kill(name)
    assert "SuperNode ID" not in log, f"{name} was let in:\n{log}"
    return log


def test_an_unregistered_node_is_refused(cluster: Cluster, folder: Path) -> None:
    make_node(folder / "others", "stranger")
    stays_out(cluster, "stranger", cluster.link, folder / "others" / "stranger", folder)
    assert '"POST /v1/fleet/activate-node HTTP/1.1" 401' in cluster.crew.log("superlink").read_text()
    assert turned_away(cluster.link.address, folder / "keys" / "ca.crt", folder / "others" / "stranger")
    assert not turned_away(cluster.link.address, folder / "keys" / "ca.crt", folder / "keys" / "node0")


def test_a_node_refuses_a_server_with_another_certificate(cluster: Cluster, folder: Path) -> None:
    make_server(folder / "impostor", [])
    link = Link(cluster.link.address, folder / "impostor" / "ca.crt")
    log = stays_out(cluster, "deceived", link, folder / "keys" / "node0", folder)
    assert "certificate" in log.lower() or "ssl" in log.lower() or "connection" in log.lower(), log


def test_a_plain_text_client_is_refused(cluster: Cluster, folder: Path) -> None:
    stays_out(cluster, "plain", Link(cluster.link.address), None, folder)
    with socket.create_connection(("127.0.0.1", cluster.link_port), timeout=5) as plain:
        plain.sendall(b"GET / HTTP/1.1\r\nHost: localhost\r\n\r\n")
        plain.settimeout(5)
        try:
            answer = plain.recv(1000)
        except (ConnectionError, TimeoutError):
            answer = b""
        assert not answer.startswith(b"HTTP/1.1 2"), answer
