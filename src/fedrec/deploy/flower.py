"""Flower's commands as fedrec uses them: SuperLink, SuperNode, registration, run."""

from __future__ import annotations

import contextlib
import subprocess
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from fedrec.deploy.bundle import CLIENT, SERVER, write_bundle
from fedrec.deploy.processes import Crew, StartFailed, environment, program, write_toml
from fedrec.runs.atomic import private_folder, write_text

NAME = "fedrec"


@dataclass(frozen=True)
class Link:
    """How a SuperLink is reached; ``ca`` is the certificate that its own must be signed by."""

    address: str
    ca: Path | None = None

    @property
    def security(self) -> list[str]:
        return ["--insecure"] if self.ca is None else ["--root-certificates", str(self.ca)]


@dataclass(frozen=True)
class ServerFiles:
    """Certificate, key and certificate authority of a server."""

    ca: Path
    certificate: Path
    key: Path

    @classmethod
    def below(cls, folder: Path) -> ServerFiles:
        return cls(folder / "ca.crt", folder / "server.crt", folder / "server.key")


def superlink_command(host: str, port: int, files: ServerFiles | None, database: Path | None) -> list[str]:
    """A SuperLink; with files, over TLS and for registered nodes only."""
    command = [program("flower-superlink"), "--host", host, "--port", str(port)]
    command.append("--disable-runtime-dependency-installation")
    if files is None:
        command.append("--insecure")
    else:
        command += ["--ssl-ca-certfile", str(files.ca), "--ssl-certfile", str(files.certificate)]
        command += ["--ssl-keyfile", str(files.key), "--enable-supernode-auth"]
    if database is not None:
        command += ["--database", str(database)]
    return command


def supernode_command(link: Link, port: int, config: Path, key: Path | None) -> list[str]:
    """A SuperNode; ``port`` is its own, for the processes it starts."""
    command = [program("flower-supernode"), *link.security, "--superlink", link.address, "--port", str(port)]
    if key is not None:
        command += ["--auth-supernode-private-key", str(key)]
    return [*command, "--node-config", str(config)]


def connection(home: Path, link: Link) -> None:
    """Tell the ``flwr`` command how the SuperLink is reached."""
    private_folder(home, mark="config.toml")
    lines = ["[superlink]", f'default = "{NAME}"', "", f"[superlink.{NAME}]", f'address = "{link.address}"']
    lines.append("insecure = true" if link.ca is None else f'root-certificates = "{link.ca}"')
    write_text(home / "config.toml", "\n".join(lines) + "\n", private=True)


def register(home: Path, public_key: Path) -> str:
    """Let a node in by its public key; returns what Flower says."""
    command = [program("flwr"), "supernode", "register", str(public_key), NAME]
    done = subprocess.run(command, env=environment(home, ""), capture_output=True, text=True, timeout=120)
    if done.returncode:
        raise StartFailed(f"{public_key} could not be registered: {(done.stderr or done.stdout).strip()}")
    return done.stdout.strip()


def run_command(home: Path, folder: Path, server: str = SERVER, client: str = CLIENT) -> list[str]:
    """``flwr run`` of a run's folder; ends when the run does."""
    app = write_bundle(home / "fedrec-run", server, client)
    config = write_toml(home / "run.toml", {"folder": str(folder.resolve())})
    return [program("flwr"), "run", str(app), NAME, "--stream", "--run-config", str(config)]


@dataclass
class Cluster:
    """A SuperLink and SuperNodes on this machine."""

    home: Path
    link_port: int
    files: ServerFiles | None = None
    crew: Crew = field(init=False)
    configs: dict[str, tuple[Path, int, Path | None]] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.crew = Crew(self.home)

    @property
    def link(self) -> Link:
        return Link(f"127.0.0.1:{self.link_port}", None if self.files is None else self.files.ca)

    def start_link(self, database: Path | None = None) -> None:
        connection(self.home, self.link)
        self.crew.start("superlink", superlink_command("127.0.0.1", self.link_port, self.files, database))
        self.crew.wait_for_port("superlink", self.link_port)

    def start_node(
        self, name: str, port: int, config: Mapping[str, str | int | float | bool], key: Path | None = None
    ) -> None:
        path = write_toml(self.home / f"{name}.toml", {"name": name, **config})
        self.configs[name] = (path, port, key)
        self.restart_node(name)

    def restart_node(self, name: str) -> None:
        path, port, key = self.configs[name]
        self.crew.start(name, supernode_command(self.link, port, path, key))

    def start_run(self, folder: Path, server: str = SERVER, client: str = CLIENT) -> subprocess.Popen[bytes]:
        return self.crew.start("run", run_command(self.home, folder, server, client))

    def stop(self) -> None:
        self.crew.stop()

    def __enter__(self) -> Cluster:
        return self

    def __exit__(self, *_: object) -> None:
        with contextlib.suppress(KeyboardInterrupt):  # a second Ctrl-C must not leave processes behind
            self.stop()
            return
        self.stop()
