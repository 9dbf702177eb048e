"""A service in a thread of the test, asked over real sockets."""

from __future__ import annotations

import json
import threading
import time
import urllib.error
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

from starlette.types import ASGIApp

from fedrec.deploy.ports import bound
from fedrec.serve import http


@dataclass
class Answered:
    """A response."""

    status: int
    body: bytes
    kind: str

    @property
    def json(self) -> Any:
        return json.loads(self.body)


@dataclass(frozen=True)
class Running:
    """Where a service listens."""

    port: int

    @property
    def base(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    def get(self, path: str, **headers: str) -> Answered:
        return self.ask(urllib.request.Request(self.base + path, headers=headers))

    def post(self, path: str, content: Any) -> Answered:
        data = content if isinstance(content, bytes) else json.dumps(content).encode()
        return self.ask(urllib.request.Request(self.base + path, data, {"content-type": "application/json"}))

    @staticmethod
    def ask(request: urllib.request.Request) -> Answered:
        opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))
        try:
            with opener.open(request, timeout=60) as answer:
                return Answered(answer.status, answer.read(), answer.headers["content-type"])
        except urllib.error.HTTPError as problem:
            return Answered(problem.code, problem.read(), problem.headers["content-type"])


@contextmanager
def running(app: ASGIApp, ending: threading.Event | None = None) -> Iterator[Running]:
    """An application on a free port of this machine, until the block ends."""
    listening = bound("127.0.0.1", 0)
    server = http.Server(app, ending)
    thread = threading.Thread(target=server.run, kwargs={"sockets": [listening]}, daemon=True)
    thread.start()
    end = time.monotonic() + 60
    while not server.started:
        assert thread.is_alive(), "the service did not start"
        assert time.monotonic() < end, "the service does not listen"
        time.sleep(0.01)
    try:
        yield Running(listening.getsockname()[1])
    finally:
        server.end()
        thread.join(30)
