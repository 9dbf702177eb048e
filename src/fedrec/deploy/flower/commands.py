"""Flower's processes as fedrec starts them: the server behind its door, nodes, registration, runs."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tomllib
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Any

from fedrec.deploy.admission import Admission, check_name, read_public_key
from fedrec.deploy.flower.bundle import write_bundle
from fedrec.deploy.flower.superlink import TAKER, Settings
from fedrec.deploy.flower.tasks import Link, new_secret
from fedrec.deploy.ports import free_ports
from fedrec.deploy.processes import Crew, StartFailed, program, write_toml
from fedrec.runs.atomic import private_folder, write_text

NAME = "fedrec"
Value = str | int | float | bool | list[str]


@dataclass(frozen=True)
class ServerFiles:
    """Certificate, key and certificate authority of a server."""

    ca: Path
    certificate: Path
    key: Path

    @classmethod
    def below(cls, folder: Path) -> ServerFiles:
        return cls(folder / "ca.crt", folder / "server.crt", folder / "server.key")


NODE = ("-m", "fedrec.deploy.flower.node_process")
"""What Python starts for a node."""


def node_command(
    config: Path, name: str, own: Mapping[str, Value], link: Link, port: int, key: Path | None, start: tuple[str, ...]
) -> list[str]:
    """A whole node, with its configuration written to ``config``; ``port`` is for the node's work."""
    flower = [sys.executable, "-m", "fedrec.deploy.flower.supernode"]
    flower += ["--insecure"] if link.ca is None else ["--root-certificates", str(link.ca)]
    flower += ["--superlink", link.address, "--port", str(port), "--isolation", "process"]
    more: dict[str, Value] = {"port": port, "supernode": flower}
    if key is not None:
        flower += ["--auth-supernode-private-key", str(key)]
        more["key"] = str(key)
    write_toml(config, {"name": name, **own, **more})
    return [sys.executable, *start, str(config)]


def connection(home: Path, link: Link) -> None:
    """Tell the ``flwr`` command how the server's own interfaces are reached."""
    private_folder(home, mark="config.toml")
    lines = ["[superlink]", f'default = "{NAME}"', "", f"[superlink.{NAME}]", f'address = "{link.address}"']
    lines.append("insecure = true" if link.ca is None else f'root-certificates = "{link.ca}"')
    write_text(home / "config.toml", "\n".join(lines) + "\n", private=True)


def register(home: Path, public_key: Path, name: str | None = None) -> str:
    """Admit a node under a name (by default the one in its key's file); returns the name."""
    key, comment = read_public_key(public_key)
    name = check_name(name or comment or public_key.stem)
    admission = Admission(home)
    known = admission.nodes().get(name) == key
    admission.admit(name, key)
    problem = _registered(home, key)
    if problem:
        if not known:
            admission.revoke(name)
        raise StartFailed(f"{public_key} could not be registered: {problem}")
    return name


def _registered(home: Path, key: bytes) -> str:
    """Make a key known to Flower, too; what is wrong, or nothing. One call: Flower's own command takes seconds."""
    import httpx
    from flwr.proto.control_pb2 import RegisterNodeRequest
    from flwr.supercore.control import ControlHttpClient
    from flwr.supercore.interceptors import RuntimeVersionHttpInterceptor

    said = tomllib.loads((home / "config.toml").read_text(encoding="utf-8"))["superlink"][NAME]
    ca = said.get("root-certificates")  # as :func:`connection` has written it
    link = Link(str(said["address"]), None if ca is None else Path(ca))
    client = ControlHttpClient.from_server_address(
        **link.named, interceptors=[RuntimeVersionHttpInterceptor(component_name="flwr CLI")]
    )
    try:
        client.RegisterNode(RegisterNodeRequest(public_key=key))
    except httpx.HTTPStatusError as problem:
        answer = problem.response.text
        return "" if "already in use" in answer else " ".join(answer.split())[:300]
    except httpx.HTTPError as problem:
        return f"no server answers on {link.address} ({type(problem).__name__}); start it with `fedrec deploy server`"
    finally:
        client.close()
    return ""


def run_command(home: Path, folder: Path) -> list[str]:
    """``flwr run`` of a run's folder; ends when the run does."""
    before = os.umask(0o077)  # the server's folder is its user's own
    try:
        app = write_bundle(home / "fedrec-run")
        config = write_toml(home / "run.toml", {"folder": str(folder.resolve())})
    finally:
        os.umask(before)
    return [program("flwr"), "run", str(app), NAME, "--stream", "--run-config", str(config)]


@dataclass
class Cluster:
    """A server and nodes on this machine; with files, over TLS and through the door."""

    home: Path
    link_port: int
    files: ServerFiles | None = None
    start: tuple[str, ...] = NODE
    """What Python starts for a node."""
    taker: tuple[str, ...] = TAKER
    host: str = "127.0.0.1"
    """Where the door listens."""
    crew: Crew = field(init=False)
    nodes: dict[str, list[str]] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.crew = Crew(self.home)

    @property
    def link(self) -> Link:
        """How nodes reach the server."""
        return Link(f"127.0.0.1:{self.link_port}", None if self.files is None else self.files.ca)

    def start_link(self, database: Path | None = None) -> None:
        """All of Flower on 127.0.0.1; with files, another port over TLS for admitted nodes only."""
        inner = self.link_port if self.files is None else free_ports(1)[0]
        connection(self.home, Link(f"127.0.0.1:{inner}", self.link.ca))
        settings = Settings(inner, str(new_secret(self.home)), str(self.home), taker=self.taker)
        if database is not None:
            settings = replace(settings, database=str(database))
        if self.files is not None:
            files: dict[str, Any] = {name: str(path) for name, path in vars(self.files).items()}
            settings = replace(settings, **files, public_host=self.host, public_port=self.link_port)
        path = self.home / "server.json"
        write_text(path, json.dumps(asdict(settings)), private=True)
        self.crew.start("superlink", [sys.executable, "-m", "fedrec.deploy.flower.superlink", str(path)])
        self.crew.wait_for_port("superlink", inner)
        if self.files is not None:
            self.crew.wait_for_port("superlink", self.link_port, self.host)

    def start_node(self, name: str, port: int, config: Mapping[str, Value], key: Path | None = None) -> None:
        path = self.home / f"{name}.toml"
        self.nodes[name] = node_command(path, name, config, self.link, port, key, self.start)
        self.restart_node(name)

    def restart_node(self, name: str) -> None:
        self.crew.start(name, self.nodes[name])

    def start_run(self, folder: Path) -> subprocess.Popen[bytes]:
        return self.crew.start("run", run_command(self.home, folder))

    def stop(self) -> None:
        self.crew.stop()

    def __enter__(self) -> Cluster:
        return self

    def __exit__(self, *_: object) -> None:
        self.crew.__exit__()
