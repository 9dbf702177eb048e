"""A stranger at the port, step by step as the attack was carried out once with success: refused everywhere.

Then the same with more: a registered node under another's name, a revoked node, an operator's run with another
application. Real servers, real sockets, TLS.
"""

from __future__ import annotations

import base64
import datetime
import io
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import chdir, redirect_stderr, redirect_stdout
from dataclasses import dataclass
from pathlib import Path

import pytest
from live import PATIENCE, wait
from stranger import DESCRIPTIONS, Stranger, interfaces

from fedrec.data.load import load
from fedrec.deploy.admission import sign
from fedrec.deploy.flower.door import CALLS
from fedrec.deploy.ports import free_ports

FEDREC = [sys.executable, "-m", "fedrec.cli.main"]


@dataclass
class Federation:
    """A server and nodes, started by the commands that people use."""

    folder: Path
    port: int
    members: dict[str, subprocess.Popen[bytes]]

    def fedrec(self, *arguments: str, status: int = 0) -> str:
        """A command that ends by itself, in this process: how commands start is the how-to page's test."""
        from fedrec.cli.main import main

        said, found = io.StringIO(), 0
        with chdir(self.folder), redirect_stdout(said), redirect_stderr(said), pytest.MonkeyPatch.context() as patch:
            patch.setattr(sys, "argv", ["fedrec", *arguments])
            try:
                main()
            except SystemExit as stop:
                found = int(stop.code or 0)
        assert found == status, f"{arguments}\n{said.getvalue()}"
        return said.getvalue()

    def start(self, name: str, *arguments: str, until: str) -> None:
        with open(self.folder / f"{name}.out", "wb") as output:
            member = subprocess.Popen([*FEDREC, *arguments], cwd=self.folder, stdout=output, stderr=subprocess.STDOUT)
        self.members[name] = member
        wait(lambda: until in self.said(name) or member.poll() is not None, f"{name}: {self.said(name)}")
        assert until in self.said(name), self.said(name)

    def said(self, name: str) -> str:
        return (self.folder / f"{name}.out").read_text()

    def start_node(self, name: str, key: str, data: str) -> None:
        where = ["--server", f"127.0.0.1:{self.port}", "--ca", "certificates/ca.crt"]
        own = ["--data", f"{data}.csv", "--key", f"keys/{key}", "--folder", f"folder-{key}"]
        self.start(key, "deploy", "node", "--name", name, *where, *own, until="connecting")

    def stop(self) -> None:
        for member in reversed(self.members.values()):
            member.send_signal(signal.SIGINT)
        for member in self.members.values():
            member.wait(timeout=PATIENCE)


@pytest.fixture(scope="module")
def federation(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Federation]:
    folder = tmp_path_factory.mktemp("stranger")
    data = load("demo")
    assert data.times is not None
    for name, own in (("hospital-a", data.users % 2 == 0), ("hospital-b", data.users % 2 == 1)):
        rows = zip(data.user_ids[data.users[own]], data.item_ids[data.items[own]], data.times[own], strict=True)
        (folder / f"{name}.csv").write_text("user,item,time\n" + "".join(f"{u},{i},{t}\n" for u, i, t in rows))
    few = data.users < 5
    rows = zip(data.user_ids[data.users[few]], data.item_ids[data.items[few]], data.times[few], strict=True)
    (folder / "impostor.csv").write_text("user,item,time\n" + "".join(f"x{u},{i},{t}\n" for u, i, t in rows))
    (folder / "items.txt").write_text("\n".join(data.item_ids) + "\n")
    made = Federation(folder, free_ports(1)[0], {})
    try:
        made.fedrec("deploy", "keys", "certificates", "--host", "127.0.0.1")
        where = ["--host", "127.0.0.1", "--port", str(made.port)]
        made.start("server", "deploy", "server", "--keys", "certificates", *where, until="server ready")
        for name in ("hospital-a", "hospital-b", "impostor"):
            made.fedrec("deploy", "keys", "keys", "--node", name)
            made.fedrec("deploy", "register", f"keys/{name}.pub")
        made.start_node("hospital-a", "hospital-a", "hospital-a")
        made.start_node("hospital-b", "hospital-b", "hospital-b")
        made.start_node("hospital-a", "impostor", "impostor")  # registered, under a name that is not its own
        yield made
    finally:
        made.stop()


@pytest.fixture
def stranger(federation: Federation, tmp_path: Path) -> Stranger:
    return Stranger(f"127.0.0.1:{federation.port}", federation.folder / "certificates" / "ca.crt", tmp_path)


def test_the_interface_is_not_described(stranger: Stranger) -> None:
    assert {path: stranger.asks(path) for path in DESCRIPTIONS} == dict.fromkeys(DESCRIPTIONS, 404)
    assert not stranger.asks_in_plain_text().startswith(b"HTTP/1.1 2")


def test_every_path_of_every_interface_is_refused(stranger: Stranger) -> None:
    found = interfaces()
    assert len(found["control"]) > 20
    assert len(found["runtime"]) > 10
    for kind, paths in found.items():
        for path in paths:
            assert stranger.asks(path) == 404, path
            assert stranger.asks(path, "POST") == (401 if path in CALLS else 404), f"{kind} {path}"
            assert stranger.asks(path + "/", "POST") == 404
            assert stranger.asks("/v1/fleet/../" + path.removeprefix("/v1/"), "POST") == 404
    assert stranger.asks("/v1/fleet/register-node", "POST") == 404


def test_a_strangers_key_is_refused_before_the_body_is_read(stranger: Stranger, federation: Federation) -> None:
    def headers(key: Path, public: bytes, when: str | None = None) -> dict[str, str]:
        stamp = when or datetime.datetime.now(datetime.UTC).isoformat()
        proof = sign(key, stamp.encode())
        plain = (base64.b64encode(public).decode(), base64.b64encode(proof).decode(), stamp)
        return dict(zip(("flwr-public-key", "flwr-signature", "flwr-timestamp"), plain, strict=True))

    from fedrec.deploy.admission import read_public_key
    from fedrec.deploy.credentials import make_node

    make_node(stranger.home / "own", "stranger")
    own, keys = stranger.home / "own", federation.folder / "keys"
    admitted = read_public_key(keys / "hospital-a.pub")[0]
    path = "/v1/fleet/pull-messages"
    asked = {
        "own key": headers(own / "stranger", read_public_key(own / "stranger.pub")[0]),
        "an admitted key, signed with another": headers(own / "stranger", admitted),
        "an old signature": headers(keys / "hospital-a", admitted, "2026-01-01T00:00:00+00:00"),
        "a signature of tomorrow": headers(keys / "hospital-a", admitted, "2199-01-01T00:00:00+00:00"),
        "no time zone": headers(keys / "hospital-a", admitted, "2026-01-01T00:00:00"),
        "not base64": {"flwr-public-key": "?", "flwr-signature": "?", "flwr-timestamp": "?"},
    }
    for what, given in asked.items():
        assert stranger.asks(path, "POST", b"\xff" * 100, given) == 401, what
    assert stranger.asks(path, "POST", b"\xff" * 100, headers(keys / "hospital-a", admitted)) != 401
    assert stranger.asks(path, "POST", b"", {**asked["own key"], "Content-Length": "99999999999"}) in (400, 413)


def test_a_stranger_registers_lists_runs_and_stops_nothing(stranger: Stranger) -> None:
    assert not stranger.registers_a_key()
    assert not stranger.lists()
    assert stranger.runs_an_app() == []
    assert not stranger.stops_a_run()


def test_a_run_with_another_application_is_executed_nowhere(federation: Federation, tmp_path: Path) -> None:
    """Even who reaches the operator's interface, on the loopback, runs no code: server and nodes have their own."""
    inner = (federation.folder / "server" / "config.toml").read_text().partition('address = "')[2].partition('"')[0]
    insider = Stranger(inner, federation.folder / "certificates" / "ca.crt", tmp_path)
    assert insider.lists(), "the operator's own interface should answer here"
    assert insider.runs_an_app() == []
    wait(lambda: "ForeignApplication" in (federation.folder / "server" / "superlink.log").read_text(), "refusal")


def test_a_name_belongs_to_its_key_and_a_revoked_node_is_out_from_the_next_round_on(federation: Federation) -> None:
    options = [
        "--items",
        "items.txt",
        "--nodes",
        "2",
        "--set",
        "dim=4",
        "--set",
        "epochs=1",
        "--least",
        "0.4",
        "--deadline",
        "600",
    ]
    command = [*FEDREC, "deploy", "run", "fedavg", *options, "--rounds", "8", "--out", "run"]
    with open(federation.folder / "run.out", "wb") as output:
        run = subprocess.Popen(command, cwd=federation.folder, stdout=output, stderr=subprocess.STDOUT)
    wait(lambda: "round 1" in federation.said("run") or run.poll() is not None, federation.said("run"))
    federation.fedrec("deploy", "revoke", "hospital-b")
    assert run.wait(timeout=PATIENCE) == 0, federation.said("run")

    log = (federation.folder / "server" / "superlink.log").read_text()
    assert "calls itself 'hospital-a' and is left out: that name belongs to another key" in log
    from fedrec.runs.folder import RunFolder

    records = RunFolder.open(federation.folder / "run").records()
    data = load("demo")
    both = data.n_users
    assert records[0]["participants"] == both, "the impostor displaced somebody"
    assert records[-1]["participants"] == both // 2
    assert records[-1]["missing"] == ["hospital-b: its key was revoked"]
    assert "revoked" in log
    wait(lambda: "does not let this node in" in federation.said("hospital-b"), "the revoked node's own word")


def test_names_keys_and_lists_that_cannot_be(federation: Federation) -> None:
    federation.fedrec("deploy", "keys", "other", "--node", "hospital-a")
    said = federation.fedrec("deploy", "register", "other/hospital-a.pub", status=2)
    assert "belongs to another key" in said
    said = federation.fedrec("deploy", "register", "keys/hospital-a.pub", "--name", "hospital-z", status=2)
    assert "already admitted as 'hospital-a'" in said
    assert "no node named 'nobody'" in federation.fedrec("deploy", "revoke", "nobody", status=2)
    assert "not a node's name" in federation.fedrec(
        "deploy", "register", "other/hospital-a.pub", "--name", "../x", status=2
    )
    (federation.folder / "junk.pub").write_text("ssh-rsa AAAA")
    assert "not a public key" in federation.fedrec("deploy", "register", "junk.pub", status=2)


def test_the_servers_files_are_private(federation: Federation) -> None:
    for path in (federation.folder / "server").rglob("*"):
        mode = path.stat().st_mode & 0o777
        assert not mode & 0o077, f"{path}: {mode:o}"
    assert os.stat(federation.folder / "server").st_mode & 0o077 == 0
