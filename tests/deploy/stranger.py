"""Somebody who reaches the server's port and has its ``ca.crt``, nothing else: what that person tries.

Every step says what it got. ``python tests/deploy/stranger.py HOST:PORT CA FOLDER`` carries all of them out.
"""

from __future__ import annotations

import os
import socket
import ssl
import subprocess
import sys
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from fedrec.deploy.credentials import make_node

DESCRIPTIONS = ("/openapi.json", "/docs", "/health", "/v1/health", "/")

HOSTILE_SERVER = """
import os, pathlib
from flwr.app import Context, Message, RecordDict, ConfigRecord
from flwr.serverapp import Grid, ServerApp

app = ServerApp()
LOOT = pathlib.Path({loot!r})
LOOT.joinpath("server-imported").touch()

@app.main()
def main(grid: Grid, context: Context) -> None:
    LOOT.joinpath("server-ran").touch()
    ids = list(grid.get_node_ids())
    word = RecordDict({{"c": ConfigRecord({{"x": 1}})}})
    messages = [Message(word, dst_node_id=i, message_type="query", ttl=60.0) for i in ids]
    for reply in grid.send_and_receive(messages, timeout=45):
        if reply.has_content():
            LOOT.joinpath("history-%s" % reply.metadata.src_node_id).write_text(str(reply.content["c"]["lines"]))
"""

HOSTILE_CLIENT = """
import pathlib, os
from flwr.app import Context, Message, RecordDict, ConfigRecord
from flwr.clientapp import ClientApp

app = ClientApp()
LOOT = pathlib.Path({loot!r})
LOOT.joinpath("client-imported-%d" % os.getpid()).touch()

@app.query()
def query(message: Message, context: Context) -> Message:
    LOOT.joinpath("client-ran-%d" % os.getpid()).touch()
    lines = pathlib.Path(str(context.node_config["data"])).read_text()[:200]
    return Message(RecordDict({{"c": ConfigRecord({{"lines": lines}})}}), reply_to=message)
"""

HOSTILE_PROJECT = """
[project]
name = "hostile"
version = "1.0.0"
description = "x"
license = "Apache-2.0"
dependencies = []
[tool.flwr.app]
publisher = "stranger"
[tool.flwr.app.components]
serverapp = "hostile.server:app"
clientapp = "hostile.client:app"
[tool.flwr.app.config]
folder = ""
"""


@dataclass
class Stranger:
    """Tries everything from ``home``; what hostile code gets hold of lands in ``loot``."""

    address: str
    ca: Path
    home: Path
    loot: Path = field(init=False)

    def __post_init__(self) -> None:
        self.loot = self.home / "loot"
        self.loot.mkdir(parents=True, exist_ok=True)
        flower = self.home / "flwr"
        flower.mkdir(exist_ok=True)
        flower.joinpath("config.toml").write_text(
            f'[superlink]\ndefault = "them"\n[superlink.them]\naddress = "{self.address}"\n'
            f'root-certificates = "{self.ca.resolve()}"\n'
        )

    def flwr(self, *arguments: str, seconds: float = 90.0) -> subprocess.CompletedProcess[str]:
        """One of Flower's own commands, as anybody can install them."""
        environment = {
            **os.environ,
            "FLWR_HOME": str(self.home / "flwr"),
            "FLWR_TELEMETRY_ENABLED": "0",
            "FLWR_DISABLE_UPDATE_CHECK": "1",
        }
        command = [str(Path(sys.executable).parent / "flwr"), *arguments]
        try:
            return subprocess.run(command, env=environment, capture_output=True, text=True, timeout=seconds)
        except subprocess.TimeoutExpired as late:
            return subprocess.CompletedProcess(command, -1, str(late.stdout), str(late.stderr))

    def registers_a_key(self) -> bool:
        if not (self.home / "own" / "stranger").exists():
            make_node(self.home / "own", "stranger")
        return self.flwr("supernode", "register", str(self.home / "own" / "stranger.pub"), "them").returncode == 0

    def lists(self) -> bool:
        """Runs and nodes."""
        return any(self.flwr(*words, "them").returncode == 0 for words in (("ls",), ("supernode", "ls")))

    def runs_an_app(self) -> list[str]:
        """A hostile app; returns what it left in the loot."""
        app = self.home / "hostile"
        (app / "hostile").mkdir(parents=True, exist_ok=True)
        (app / "pyproject.toml").write_text(HOSTILE_PROJECT)
        (app / "hostile" / "__init__.py").write_text("")
        (app / "hostile" / "server.py").write_text(HOSTILE_SERVER.format(loot=str(self.loot)))
        (app / "hostile" / "client.py").write_text(HOSTILE_CLIENT.format(loot=str(self.loot)))
        self.flwr("run", str(app), "them", "--stream", seconds=75.0)
        return sorted(path.name.rpartition("-")[0] or path.name for path in self.loot.iterdir())

    def stops_a_run(self, run: int = 1) -> bool:
        return self.flwr("stop", str(run), "them").returncode == 0

    def asks(self, path: str, method: str = "GET", body: bytes = b"", headers: dict[str, str] | None = None) -> int:
        """A raw request by a client that checks no certificate; the status, 0 where the line was closed."""
        host, _, port = self.address.rpartition(":")
        context = ssl._create_unverified_context()
        lines = [f"{method} {path} HTTP/1.1", f"Host: {host}", f"Content-Length: {len(body)}", "Connection: close"]
        lines += ["Content-Type: application/x-protobuf"] * (method == "POST")
        lines += [f"{name}: {value}" for name, value in (headers or {}).items()]
        try:
            with (
                socket.create_connection((host, int(port)), timeout=10) as plain,
                context.wrap_socket(plain, server_hostname=host) as line,
            ):
                line.sendall(("\r\n".join(lines) + "\r\n\r\n").encode() + body)
                answer = line.recv(4096)
        except (OSError, ssl.SSLError):
            return 0
        return int(answer.split()[1]) if answer.startswith(b"HTTP/") else 0

    def asks_in_plain_text(self) -> bytes:
        host, _, port = self.address.rpartition(":")
        try:
            with socket.create_connection((host, int(port)), timeout=5) as plain:
                plain.sendall(b"GET /openapi.json HTTP/1.1\r\nHost: x\r\n\r\n")
                return plain.recv(1000)
        except OSError:
            return b""


def interfaces() -> dict[str, list[str]]:
    """Every path that Flower's server knows, by interface (control, fleet, runtime, other)."""
    from flwr.superlink.main import create_app

    found: dict[str, list[str]] = {"control": [], "fleet": [], "runtime": [], "other": []}
    for path in create_app().openapi()["paths"]:
        kind = next((name for name in ("control", "fleet", "runtime") if path.startswith(f"/v1/{name}/")), "other")
        found[kind].append(path)
    return found


def everything(stranger: Stranger) -> dict[str, Any]:
    """All steps, in the order of the attack."""
    got: dict[str, Any] = {"descriptions": {path: stranger.asks(path) for path in DESCRIPTIONS}}
    got["registers a key"] = stranger.registers_a_key()
    got["lists runs or nodes"] = stranger.lists()
    got["runs an app"] = stranger.runs_an_app()
    got["stops a run"] = stranger.stops_a_run()
    got["plain text"] = stranger.asks_in_plain_text()[:40]
    for kind, paths in interfaces().items():
        got[kind] = sorted({stranger.asks(path, "POST") for path in paths} | {stranger.asks(path) for path in paths})
    got["loot"] = {path.name: path.read_text()[:120] for path in sorted(stranger.loot.iterdir())}
    return got


if __name__ == "__main__":
    address, ca, folder = sys.argv[1:]
    for step, result in everything(Stranger(address, Path(ca), Path(folder))).items():
        print(f"{step}: {result}")
