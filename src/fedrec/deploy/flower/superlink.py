"""Flower's server behind a door: the public port for admitted nodes, everything else on the loopback alone.

    python -m fedrec.deploy.flower.superlink SETTINGS.json

One process, one application, two listeners. The inner one is bound to 127.0.0.1 and has all of Flower's interfaces,
for the operator's own commands; the public one stands behind :class:`~fedrec.deploy.flower.door.Door`.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from fedrec.deploy.admission import Admission
from fedrec.deploy.flower.tasks import Link
from fedrec.deploy.server.presence import Presence

TAKER = ("-m", "fedrec.deploy.flower.server_process")
"""What Python starts to carry runs out."""

BUSY = "busy_timeout"
PATIENCE = (BUSY, "60000")
"""Milliseconds that a call waits for the database."""
FIRST = 20.0
"""Seconds in which whoever connects to the public port must have asked for something."""
LARGEST_HEAD = 64 << 10
"""Bytes of a request before its body; a node's have a thousand."""


@dataclass(frozen=True)
class Settings:
    """How the server listens; paths as text, because they are written to a file."""

    port: int
    """The inner listener's, on 127.0.0.1."""
    secret: str
    """File of the secret that task takers sign with."""
    home: str
    database: str | None = None
    ca: str | None = None
    certificate: str | None = None
    key: str | None = None
    public_host: str | None = None
    public_port: int = 0
    taker: tuple[str, ...] = TAKER

    @property
    def link(self) -> Link:
        """How the inner listener is reached."""
        return Link(f"127.0.0.1:{self.port}", None if self.ca is None else Path(self.ca))

    @classmethod
    def read(cls, path: Path) -> Settings:
        return cls(**json.loads(path.read_text(encoding="utf-8")))


def main(path: Path) -> None:
    import uvicorn
    from flwr.supercore.http_logging import get_uvicorn_log_config
    from flwr.supercore.logger import console_handler
    from flwr.superlink.cli.flower_superlink import SuperLinkLifespan, _parse_superlink_lifespan_config
    from flwr.superlink.main import create_app

    from fedrec.deploy.flower.door import Door

    settings = Settings.read(path)
    wait_for_the_database()
    sys.argv = ["flower-superlink", *_arguments(settings)]
    app = create_app(_parse_superlink_lifespan_config(), SuperLinkLifespan)
    common: dict[str, Any] = {
        "log_config": get_uvicorn_log_config(console_handler.level),
        "ssl_keyfile": settings.key,
        "ssl_certfile": settings.certificate,
    }
    inner = uvicorn.Server(uvicorn.Config(app, host="127.0.0.1", port=settings.port, **common))
    outer = None
    if settings.public_host is not None:
        home = Path(settings.home)
        door = Door(app, Admission(home).keys, Presence(home).saw)

        class Public(uvicorn.Server):
            """A second listener in one process: it leaves signals to the first."""

            @contextlib.contextmanager
            def capture_signals(self) -> Any:
                yield

        common |= {
            "http": prompt(),
            "lifespan": "off",
            "server_header": False,
            "limit_concurrency": 2000,
            "timeout_keep_alive": 30,
        }
        outer = Public(uvicorn.Config(door, host=settings.public_host, port=settings.public_port, **common))

    async def both() -> None:
        second = asyncio.create_task(outer.serve()) if outer is not None else None
        try:
            await inner.serve()
        finally:
            if outer is not None and second is not None:
                outer.should_exit = True
                await second

    taker = subprocess.Popen([sys.executable, *settings.taker, str(path)], stdin=subprocess.DEVNULL)
    try:
        asyncio.run(both())
    finally:
        taker.terminate()


def prompt(seconds: float = FIRST, most: int = LARGEST_HEAD) -> Any:
    """Connections that are cut where the head of a first request does not come in time, or any head is too large.

    The public port has places for two thousand, and somebody who connects and says nothing, or a letter now and then,
    would keep one for ever; somebody whose head has no end would fill the memory, for nobody is asked for a key before
    it is whole. Who is turned away is cut off by the door; who stays has shown a key.
    """
    from uvicorn.protocols.http import auto

    base: Any = auto.AutoHTTPProtocol

    class Prompt(base):  # type: ignore[misc]
        def connection_made(self, transport: Any) -> None:
            super().connection_made(transport)
            self._late, self._head = self.loop.call_later(seconds, self._cut), 0

        def connection_lost(self, exc: Exception | None) -> None:
            self._late.cancel()
            super().connection_lost(exc)

        def data_received(self, data: bytes) -> None:
            before = self.cycle
            super().data_received(data)
            waits = self.cycle is before and (before is None or before.response_complete)
            self._head = self._head + len(data) if waits else 0
            if self._head > most:
                self.transport.abort()

        def _cut(self) -> None:
            if self.cycle is None:  # no request has begun
                self.transport.abort()

    return Prompt


def wait_for_the_database() -> None:
    """Have Flower wait longer for its database: with many nodes on a busy machine five seconds pass, and a call that
    gives up is a message that its node never gets."""
    from flwr.supercore import sql_mixin

    flower: Any = sql_mixin
    flower.SQLITE_PRAGMAS = (*((name, value) for name, value in flower.SQLITE_PRAGMAS if name != BUSY), PATIENCE)


def _arguments(settings: Settings) -> list[str]:
    """Flower's own command line for this server."""
    given = ["--host", "127.0.0.1", "--port", str(settings.port), "--disable-runtime-dependency-installation"]
    given += ["--isolation", "process", "--superexec-auth-secret-file", settings.secret]
    if settings.certificate is None or settings.key is None or settings.ca is None:
        given.append("--insecure")
    else:
        given += ["--ssl-ca-certfile", settings.ca, "--ssl-certfile", settings.certificate]
        given += ["--ssl-keyfile", settings.key, "--enable-supernode-auth"]
    return given if settings.database is None else [*given, "--database", settings.database]


if __name__ == "__main__":
    main(Path(sys.argv[1]))
