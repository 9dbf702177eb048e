"""A server on a socket, in this process, until it is interrupted."""

from __future__ import annotations

import contextlib
import logging
import socket
import sys
import threading
from ipaddress import ip_address
from pathlib import Path
from types import FrameType

import uvicorn
from starlette.types import ASGIApp

from fedrec.errors import BadInput
from fedrec.serve.door import LOCAL
from fedrec.serve.heads import LimitedHeads

MOST_CONNECTIONS = 8_192
"""At once; those above are answered 503."""


def local_names(listening: socket.socket, host: str) -> frozenset[str] | None:
    """By which names a service is asked that only this machine reaches; None where others reach it.

    What counts is the address that ``host`` stands for: the machine's own name often is one of the loopback.
    """
    found = ip_address(listening.getsockname()[0].partition("%")[0])
    if not found.is_loopback:
        return None
    return LOCAL | {host.lower(), f"[{found}]" if found.version == 6 else str(found)}


def address(listening: socket.socket) -> str:
    host, port = listening.getsockname()[:2]
    return f"http://[{host}]:{port}" if ":" in host else f"http://{host}:{port}"


class Server(uvicorn.Server):
    """One that says when it is to end, so that streams which would go on for ever do not hold it up."""

    def __init__(self, app: ASGIApp, ending: threading.Event | None = None) -> None:
        self.ending = ending or threading.Event()
        super().__init__(
            uvicorn.Config(
                app, log_config=None, access_log=False, server_header=False, lifespan="on", ws="none",
                timeout_graceful_shutdown=5, limit_concurrency=MOST_CONNECTIONS, http=LimitedHeads,
            )
        )  # fmt: skip

    def handle_exit(self, sig: int, frame: FrameType | None) -> None:
        self.ending.set()
        super().handle_exit(sig, frame)

    def end(self) -> None:
        """From another thread: answer what was asked by now, and stop."""
        self.ending.set()
        self.should_exit = True


def serve(app: ASGIApp, listening: socket.socket, ending: threading.Event | None = None) -> None:
    """Until Ctrl-C or a termination signal: what was asked by then is answered."""
    logging.getLogger("uvicorn").setLevel(logging.ERROR)
    _allow_connections()
    with contextlib.suppress(KeyboardInterrupt):
        Server(app, ending).run(sockets=[listening])


def _allow_connections() -> None:
    """As many open files as there may be connections, where the system counts them."""
    try:
        import resource
    except ImportError:  # Windows
        return
    _, most = resource.getrlimit(resource.RLIMIT_NOFILE)
    wanted = MOST_CONNECTIONS + 256 if most == resource.RLIM_INFINITY else min(most, MOST_CONNECTIONS + 256)
    resource.setrlimit(resource.RLIMIT_NOFILE, (wanted, most))


def log_to_stderr(requests: bool) -> None:
    """Lines with their time on standard error; one a request where asked for."""
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(logging.Formatter("%(asctime)s %(message)s"))
    top = logging.getLogger("fedrec.serve")
    top.addHandler(handler)
    top.setLevel(logging.INFO)
    top.propagate = False
    logging.getLogger("fedrec.serve.access").setLevel(logging.INFO if requests else logging.WARNING)


def read_token(path: Path | None) -> str | None:
    """The one line of a file."""
    if path is None:
        return None
    try:
        token = path.read_text(encoding="ascii").strip()
    except (OSError, UnicodeDecodeError) as problem:
        why = problem.strerror if isinstance(problem, OSError) else "it is not plain text"
        raise BadInput(f"cannot read {path}: {why}; give a file with a token of at least 16 letters") from None
    if len(token) < 16 or not token.isprintable() or " " in token:
        raise BadInput(f"{path}: a token has at least 16 letters in one word; make one with `openssl rand -hex 24`")
    return token
