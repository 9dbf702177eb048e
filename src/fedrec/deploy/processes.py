"""Flower's processes on this machine: start, watch, and stop without leaving one behind."""

from __future__ import annotations

import contextlib
import fcntl
import json
import multiprocessing
import os
import secrets
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path
from typing import ParamSpec, TypeVar

from fedrec.deploy.last_words import last_words
from fedrec.deploy.ports import listening
from fedrec.runs.atomic import private_folder, private_opener, write_text

P = ParamSpec("P")
T = TypeVar("T")

TAG = "FEDREC_FEDERATION"
"""Environment variable that marks every process of one federation, however it was started."""


@contextlib.contextmanager
def one_at_a_time(lock: Path) -> Iterator[None]:
    """Processes of this machine wait for one another here."""
    with open(lock, "w", opener=private_opener) as handle:
        fcntl.flock(handle, fcntl.LOCK_EX)
        yield


class StartFailed(RuntimeError):
    """A Flower process that did not come up; the message says what it said last."""


def program(name: str) -> str:
    """One of Flower's commands, from the environment that runs this one."""
    beside = Path(sys.executable).parent / name
    return str(beside) if beside.exists() else name


def environment(home: Path, tag: str) -> dict[str, str]:
    """Environment of every Flower process: own home, no telemetry, no update check, quick task pick-up."""
    path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ.get('PATH', '')}"
    return {
        **os.environ,
        "PATH": path,  # Flower starts its own helpers by name
        "FLWR_HOME": str(home),
        "FLWR_TELEMETRY_ENABLED": "0",
        "FLWR_DISABLE_UPDATE_CHECK": "1",
        "FLWR_DISABLE_RUNTIME_DEPENDENCY_INSTALLATION": "1",
        "FLWR_SUPEREXEC_TASK_POLL_INTERVAL": "0.1",
        "PYTHONUNBUFFERED": "1",
        TAG: tag,
    }


def apart(work: Callable[P, T]) -> Callable[P, T]:
    """The same in a process that ends with it: what it imports and holds (pandas, a whole file) is given back."""

    def done(*args: P.args, **kwargs: P.kwargs) -> T:
        with ProcessPoolExecutor(1, multiprocessing.get_context("spawn")) as pool:
            return pool.submit(work, *args, **kwargs).result()

    return done


@dataclass
class Crew:
    """Processes that are started together and stopped together."""

    home: Path
    tag: str = field(default_factory=lambda: secrets.token_hex(8))
    members: dict[str, subprocess.Popen[bytes]] = field(default_factory=dict)
    _began: dict[str, int] = field(default_factory=dict)
    """Where in its log a member's own words begin: what earlier ones said stays there."""

    def start(self, name: str, command: list[str]) -> subprocess.Popen[bytes]:
        """Start a process in a group of its own, its output in ``home/NAME.log``."""
        private_folder(self.home, mark="config.toml")
        for database in self.home.glob("state.db*"):  # of a server that was first started by an earlier version
            database.chmod(0o600)
        with open(self.log(name), "ab", opener=private_opener) as output:
            self._began[name] = output.tell()
            member = subprocess.Popen(
                command,
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=subprocess.STDOUT,
                env=environment(self.home, self.tag),
                start_new_session=True,  # a Ctrl-C in the terminal is ours to handle
                umask=0o077,  # what Flower writes (state.db, keys, copies of apps) is its user's alone
            )
        self.members[name] = member
        return member

    def log(self, name: str) -> Path:
        return self.home / f"{name}.log"

    def tail(self, name: str, lines: int = 12) -> str:
        path = self.log(name)
        return "\n".join(path.read_text(errors="replace").splitlines()[-lines:]) if path.is_file() else ""

    def said(self, name: str) -> str:
        """What a member has said since it was started here."""
        if name not in self._began:
            return ""
        with open(self.log(name), "rb") as log:
            log.seek(self._began[name])
            return log.read().decode(errors="replace")

    def last_words(self, name: str) -> str:
        """Why a member ended, as far as it said so."""
        return last_words(self.said(name))

    def wait_for_port(self, name: str, port: int, host: str = "127.0.0.1", seconds: float = 300.0) -> None:
        """Until a member listens on its port; one that stops is not waited for."""
        end = time.monotonic() + seconds
        while not listening(port, host):
            if self.members[name].poll() is not None:
                raise StartFailed(f"{name} stopped with {self.members[name].returncode}: {self.last_words(name)}")
            if time.monotonic() > end:
                raise StartFailed(f"{name} does not listen on port {port} after {seconds:g} s: {self.last_words(name)}")
            time.sleep(0.1)

    def kill(self, name: str) -> None:
        """SIGKILL to a member and all it has started."""
        member = self.members.pop(name)
        _signal([member.pid, *descendants(member.pid)], signal.SIGKILL)
        member.wait()

    def stop(self, patience: float = 2.0) -> None:
        """Stop every process of this federation: ask first, then insist. Safe to call twice."""
        _signal(self._left(), signal.SIGTERM)
        end = time.monotonic() + patience
        while time.monotonic() < end and self._left():
            time.sleep(0.1)
        for _ in range(20):
            if not (left := self._left()):
                break
            _signal(left, signal.SIGKILL)
            time.sleep(0.1)
        for member in self.members.values():
            with contextlib.suppress(subprocess.TimeoutExpired):
                member.wait(timeout=5)
        self.members.clear()

    def _left(self) -> list[int]:
        """What still runs. What a member starts is detached from it, and is found by the mark that it inherits."""
        own = [member.pid for member in self.members.values() if member.poll() is None]
        return list(dict.fromkeys(own + marked(self.tag)))

    def __enter__(self) -> Crew:
        return self

    def __exit__(self, *_: object) -> None:
        try:
            self.stop()
        except KeyboardInterrupt:  # a second Ctrl-C must not leave processes behind
            self.stop()


def marked(tag: str) -> list[int]:
    """Processes that carry a federation's mark, this one not counted (where /proc tells)."""
    wanted = f"{TAG}={tag}".encode()
    found = []
    for entry in Path("/proc").glob("[0-9]*/environ"):
        with contextlib.suppress(OSError, ValueError):
            pid = int(entry.parent.name)
            if pid != os.getpid() and wanted in entry.read_bytes().split(b"\0") and not _zombie(pid):
                found.append(pid)
    return found


def descendants(pid: int) -> list[int]:
    """Processes started by a process, and by those (where /proc tells)."""
    parents: dict[int, int] = {}
    for entry in Path("/proc").glob("[0-9]*/stat"):
        with contextlib.suppress(OSError, ValueError, IndexError):
            parents[int(entry.parent.name)] = int(entry.read_text().rpartition(")")[2].split()[1])
    found, frontier = [], {pid}
    while frontier:
        frontier = {child for child, parent in parents.items() if parent in frontier}
        found += sorted(frontier)
    return found


def _zombie(pid: int) -> bool:
    return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] == "Z"


def _signal(pids: list[int], number: signal.Signals) -> None:
    for pid in pids:
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.kill(pid, number)


def write_toml(path: Path, values: Mapping[str, str | int | float | bool | list[str]]) -> Path:
    """A flat TOML file, for Flower's node and run configuration (JSON scalars and lists of text are TOML, too)."""
    write_text(path, "".join(f"{key} = {json.dumps(value)}\n" for key, value in values.items()), private=True)
    return path
