"""What every request passes on its way to a route: host, token, size, counting, and the access log.

The log has the route as it is written in the program, so no user's id, no address and nothing of a body gets into it.
"""

from __future__ import annotations

import asyncio
import hmac
import json
import logging
import time
from typing import Any

from starlette.types import ASGIApp, Message, Receive, Scope, Send

from fedrec.serve.asking import MOST_BYTES
from fedrec.serve.counts import Counts

log = logging.getLogger("fedrec.serve")
access = logging.getLogger("fedrec.serve.access")

LOCAL = frozenset({"localhost", "127.0.0.1", "[::1]"})
"""Names by which a service on loopback is asked; a page from elsewhere that has its own name point here is not."""
OPEN = frozenset({"/health"})
"""Routes that need no token."""
BODY_SECONDS = 20.0
"""Seconds between two pieces of a body."""
TOO_LARGE = f"the body is larger than {MOST_BYTES} bytes; ask for less at once"


class TooLarge(Exception):
    """A body above the limit."""


class Door:
    """The outermost application."""

    def __init__(self, app: ASGIApp, counts: Counts, token: str | None = None, local: bool = True) -> None:
        self.app, self.counts, self.local = app, counts, local
        self.token = None if token is None else f"Bearer {token}".encode()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            if scope["type"] == "lifespan":
                await self.app(scope, receive, send)
            return
        began, status, read, more = time.perf_counter(), 0, 0, True

        async def answer(message: Message) -> None:
            nonlocal status
            if read > MOST_BYTES and not status:
                return  # what a route makes of half a body
            if message["type"] == "http.response.start":
                status = message["status"]
            await send(message)

        async def body() -> Message:
            nonlocal read, more
            message = await in_time(receive) if more else await receive()
            read, more = read + len(message.get("body", b"")), message.get("more_body", False)
            if read > MOST_BYTES:
                raise TooLarge
            return message

        try:
            refused = self.refusal(scope)
            if refused is not None:
                await drained(receive)
                await plain_error(answer, *refused)
            else:
                await self.app(scope, body, answer)
        except Exception as problem:  # FastAPI has answered already, without details
            if read <= MOST_BYTES:
                log.error("a request failed: %s: %s", type(problem).__name__, " ".join(str(problem).split()))
        if read > MOST_BYTES and not status:
            status = 413
            if more:
                await drained(receive)
            await plain_error(send, status, TOO_LARGE)
        route = getattr(scope.get("route"), "path", "other").replace(":path", "")
        took = time.perf_counter() - began
        self.counts.request(route, status, took)
        if access.isEnabledFor(logging.INFO):
            access.info("%s %s %d %.1f ms", scope["method"], route, status, 1000 * took)

    def refusal(self, scope: Scope) -> tuple[int, str] | None:
        """Why a request is turned away before anything is read of it."""
        given: dict[bytes, bytes] = dict(scope["headers"])
        if self.local:
            host = given.get(b"host", b"").decode("latin-1")
            name = host if host.endswith("]") else host.rpartition(":")[0] or host
            if name.lower() not in LOCAL:
                return 421, "this service answers on this machine alone; ask it as 127.0.0.1 or localhost"
        wanted = None if scope["path"] in OPEN else self.token
        if wanted is not None and not hmac.compare_digest(given.get(b"authorization", b""), wanted):
            return 401, "a token is needed: send the header Authorization: Bearer TOKEN"
        size = given.get(b"content-length", b"0")
        if size.isdigit() and int(size) > MOST_BYTES:
            return 413, TOO_LARGE
        return None


async def in_time(receive: Receive) -> Message:
    """The next piece of a body; who does not send it is as good as gone."""
    try:
        return await asyncio.wait_for(receive(), BODY_SECONDS)
    except TimeoutError:
        return {"type": "http.disconnect"}


async def drained(receive: Receive) -> None:
    """Read what is still sent, up to a limit: who is cut off while sending does not hear why."""
    read, message = 0, await in_time(receive)
    while message.get("more_body") and read < 8 * MOST_BYTES:
        read += len(message.get("body", b""))
        message = await in_time(receive)


async def plain_error(send: Send, status: int, text: str) -> None:
    content = error_json(text)
    headers: list[Any] = [(b"content-type", b"application/json"), (b"content-length", str(len(content)).encode())]
    if status == 401:
        headers.append((b"www-authenticate", b"Bearer"))
    if status == 413:
        headers.append((b"connection", b"close"))  # the rest of the body is not read
    await send({"type": "http.response.start", "status": status, "headers": headers})
    await send({"type": "http.response.body", "body": content})


def error_json(text: str) -> bytes:
    return json.dumps({"error": " ".join(text.split())}).encode()
