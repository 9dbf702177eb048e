"""Addresses on which this machine listens: free ones, taken ones, and a socket on one."""

from __future__ import annotations

import contextlib
import socket

from fedrec.errors import BadInput

ALL = {"0.0.0.0": "127.0.0.1", "::": "::1"}
"""Addresses that stand for all of a machine's, and where they can be reached."""


def free_ports(count: int) -> list[int]:
    """Ports that nobody listens on now."""
    with contextlib.ExitStack() as stack:
        sockets = [stack.enter_context(socket.socket()) for _ in range(count)]
        for one in sockets:
            one.bind(("127.0.0.1", 0))
        return [one.getsockname()[1] for one in sockets]


def listening(port: int, host: str = "127.0.0.1") -> bool:
    """Whether somebody listens there; an address that means all of them is looked for on the loopback."""
    with contextlib.suppress(OSError), socket.create_connection((ALL.get(host, host), port), timeout=0.5):
        return True
    return False


def check_place(host: str, port: int) -> None:
    """An address that cannot be had is bad input, before anything is started."""
    if not 0 < port < 65_536:
        raise BadInput(f"--port {port} is not a port; give 1 to 65535")
    bound(host, port).close()


def bound(host: str, port: int) -> socket.socket:
    """A socket that listens; an address that cannot be had is bad input."""
    if not 0 <= port < 65_536:
        raise BadInput(f"--port {port} is not a port; give 1 to 65535, or 0 for any free one")
    try:
        family = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)[0][0]
        made = socket.socket(family)
        made.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        made.bind((host, port))
        made.listen(2_048)
    except OSError as problem:
        raise BadInput(f"cannot listen on {host}:{port}: {problem.strerror}; choose another --host or --port") from None
    made.setblocking(False)
    return made
