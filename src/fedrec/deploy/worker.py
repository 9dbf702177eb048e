"""The node's work on a message; and a process that stays and does it for one message after another.

Flower starts a new process for every message. Importing numba or torch there would cost more than a round's
training, so the first message starts a worker that stays (``python -m fedrec.deploy.worker``): later messages
are handed to it over a local socket. It ends with its SuperNode, or when nothing has come for a while.
"""

from __future__ import annotations

import json
import logging
import os
import signal
import sys
import threading
import time
import traceback
from multiprocessing.connection import Connection, Listener
from pathlib import Path
from typing import Any

from fedrec.core.method import Keys
from fedrec.deploy.envelope import (
    Plain,
    kind_of,
    pack_answer,
    pack_fault,
    pack_hello,
    unpack_ask,
    unpack_word,
)
from fedrec.deploy.inspection import Template
from fedrec.deploy.letters import Fault, Meet
from fedrec.deploy.node import Node
from fedrec.deploy.resident import receive, send
from fedrec.deploy.share import NodeOptions

log = logging.getLogger("fedrec.deploy")

IDLE_SECONDS = 1800.0


def options_of(config: dict[str, Any]) -> NodeOptions:
    """The node's options out of Flower's node configuration."""
    directory, data, hosted = config.get("data-dir"), config.get("data"), config.get("hosted")
    return NodeOptions(
        name=str(config["name"]),
        folder=Path(str(config["folder"])),
        data=str(data) if data else None,
        hosted=str(hosted) if hosted else None,
        part=int(config.get("part", 0)),
        parts=int(config.get("parts", 1)),
        data_dir=Path(str(directory)) if directory else None,
        device=str(config.get("device", NodeOptions.device)),
        memory_mb=int(config.get("memory-mb", NodeOptions.memory_mb)),
        repeatable=bool(config.get("repeatable", False)),
    )


class Worker:
    """Answers messages; keeps what was loaded for a run."""

    def __init__(self, options: NodeOptions) -> None:
        self.options = options
        self.nodes: dict[str, Node] = {}

    def handle(self, plain: Plain) -> Plain:
        """The reply to a message. What went wrong is written here; only its kind leaves the node."""
        try:
            return self._handle(plain)
        except Exception as problem:
            folder = self.options.folder
            folder.mkdir(parents=True, exist_ok=True)
            with open(folder / "errors.log", "a", encoding="utf-8") as handle:
                handle.write(traceback.format_exc() + "\n")
            return pack_fault(Fault(f"{type(problem).__name__} on the node (its errors.log says more)"))

    def _handle(self, plain: Plain) -> Plain:
        if kind_of(plain) == "ask":
            ask = unpack_ask(plain)
            node = self.nodes.get(ask.run) or Node(self.options, ask.run)
            answer = pack_answer(node.answer(ask))
            self.nodes[ask.run] = node  # only now: runs that were never met are not remembered
            return answer
        word = unpack_word(plain)
        node = Node(self.options, word.run)
        if isinstance(word, Meet):
            hello = pack_hello(node.meet(word))
            self.nodes[word.run] = node
            return hello
        node.settle(word)
        return {"kind": "settled"}, {}

    def warm_up(self) -> None:
        """Load and compile what the first round will need, while nobody waits."""
        for node in list(self.nodes.values()):
            world = node.share.world
            server = node.method.start_server(world, Keys(0, 0))
            Template.of(node.method, server, world, 0)


def serve(config: dict[str, Any], address: str, secret: bytes, parent: int) -> None:
    """Answer messages from a local socket until the parent is gone or nothing comes."""
    worker = Worker(options_of(config))
    last = [time.monotonic()]

    def leave(*_: object) -> None:
        Path(address).unlink(missing_ok=True)
        os._exit(0)  # in the middle of work too: files are whole at every moment

    def watch() -> None:
        while _alive(parent) and time.monotonic() - last[0] < IDLE_SECONDS:
            time.sleep(0.5)
        leave()

    signal.signal(signal.SIGTERM, leave)
    threading.Thread(target=watch, daemon=True).start()
    with Listener(address, family="AF_UNIX", authkey=secret) as listener:
        while True:
            try:
                connection = listener.accept()
            except Exception as problem:  # a caller that went away, or that has not the key
                log.warning("a caller was turned away: %s", type(problem).__name__)
                continue
            last[0] = float("inf")
            _one(worker, connection)
            last[0] = time.monotonic()


def _one(worker: Worker, connection: Connection) -> None:
    with connection:
        try:
            plain = receive(connection)
            send(connection, worker.handle(plain))
        except (EOFError, OSError):
            return
    if plain[0].get("kind") == "meet":
        try:
            worker.warm_up()
        except Exception:
            log.warning("could not warm up:\n%s", traceback.format_exc())


def _alive(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except OSError:
        return False
    return True


if __name__ == "__main__":
    given = json.loads(sys.stdin.read())
    serve(given["config"], given["address"], bytes.fromhex(given["secret"]), int(given["parent"]))
