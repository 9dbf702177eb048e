"""A federation as its operators run it: the commands of the how-to in processes of their own, over TLS."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
from contextlib import suppress
from pathlib import Path
from typing import Any

from live import PATIENCE, wait

from fedrec.core.settings import build
from fedrec.deploy import steps
from fedrec.deploy.credentials import make_node, make_server
from fedrec.deploy.ports import free_ports
from fedrec.deploy.processes import descendants
from fedrec.deploy.server.rules import Rules
from fedrec.deploy.trying import cut
from fedrec.experiment.resolve import resolve
from fedrec.runs.folder import RunFolder


class Command:
    """A command of ours with what it has said so far."""

    def __init__(self, folder: Path, log: str, *arguments: object) -> None:
        self.log = folder / f"{log}.log"
        with open(self.log, "ab") as out:
            self.process = subprocess.Popen(
                [sys.executable, "-u", "-m", "fedrec.cli.main", "deploy", *map(str, arguments)],
                cwd=folder, stdout=out, stderr=subprocess.STDOUT, stdin=subprocess.DEVNULL,
            )  # fmt: skip

    def said(self) -> str:
        return self.log.read_text(errors="replace")

    def says(self, word: str) -> None:
        wait(lambda: word in self.said() or self.process.poll() is not None, f"{word!r} in {self.log}")
        assert word in self.said(), self.said()

    def interrupt(self) -> int:
        self.process.send_signal(signal.SIGINT)
        return self.process.wait(PATIENCE)

    def kill(self) -> None:
        """Without a word, with all that it has started."""
        for pid in (self.process.pid, *descendants(self.process.pid)):
            with suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
        self.process.wait()


class Operated:
    """A server and its nodes; runs are made and started here."""

    def __init__(self, folder: Path, nodes: int) -> None:
        self.folder, self.state = folder, folder / "server"
        self.names = list(cut("demo", nodes, folder))
        (self.port,) = free_ports(1)
        make_server(folder / "keys", ["127.0.0.1"])
        for name in self.names:
            make_node(folder / "keys", name)
        self.commands: list[Command] = []
        self.nodes: dict[str, Command] = {}
        self.start_server()
        for name in self.names:
            steps.admit(self.state, folder / "keys" / f"{name}.pub")

    def command(self, log: str, *arguments: object) -> Command:
        self.commands.append(Command(self.folder, log, *arguments))
        return self.commands[-1]

    def start_server(self) -> Command:
        self.server = self.command(
            "server-said", "server", "--keys", "keys", "--state", "server", "--host", "127.0.0.1", "--port", self.port
        )
        self.server.says("server ready")
        return self.server

    def node(self, name: str) -> Command:
        """A node, started unless it runs."""
        if name not in self.nodes or self.nodes[name].process.poll() is not None:
            self.nodes[name] = self.command(
                f"{name}-said", "node", "--name", name, "--data", f"{name}.csv", "--server", f"127.0.0.1:{self.port}",
                "--ca", "keys/ca.crt", "--key", f"keys/{name}", "--folder", name,
            )  # fmt: skip
        return self.nodes[name]

    def new_run(self, name: str, rounds: int, nodes: int = 2) -> RunFolder:
        chosen = {"data": "federation", "runtime": "flower", "rounds": rounds, "nodes": nodes, "settings": {"k": 4}}
        rules = build(Rules, {"nodes": nodes, "deadline": 45.0, "wait": 300.0}, "test")
        return steps.create_run(resolve("fedspectral", chosen), self.folder / "items.txt", rules, self.folder / name)

    def started(self, run: RunFolder) -> Started:
        return Started(self.state, run)

    def stop(self) -> None:
        for one in reversed(self.commands):
            if one.process.poll() is None:
                one.process.send_signal(signal.SIGINT)
        for one in self.commands:
            try:
                one.process.wait(30)
            except subprocess.TimeoutExpired:
                one.kill()


class Started:
    """``deploy run`` in a thread of this process."""

    def __init__(self, state: Path, run: RunFolder) -> None:
        self.run, self.lines = run, list[str]()
        self.result: dict[str, Any] | None = None
        self.problem = ""
        self.thread = threading.Thread(target=self._follow, args=(state,), daemon=True)
        self.thread.start()

    def _follow(self, state: Path) -> None:
        try:
            self.result = steps.run(state, self.run, None, self.lines.append)
        except Exception as problem:
            self.problem = str(problem)

    def rounds(self, count: int) -> None:
        wait(lambda: len(self.run.records()) >= count or not self.thread.is_alive(), f"{count} rounds")
        assert len(self.run.records()) >= count, self.problem

    def over(self, seconds: float = 600.0) -> None:
        self.thread.join(seconds)
        assert not self.thread.is_alive()
