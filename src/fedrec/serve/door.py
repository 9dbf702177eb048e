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
WHOLE_SECONDS = 60.0
"""Seconds for a whole body."""
DRAIN_SECONDS = 2.0
"""Seconds in which what is sent after an answer is still read, so that its sender gets to read the answer."""
TOO_LARGE = f"the body is larger than {MOST_BYTES} bytes; ask for less at once"
ENDING = "the service ends before this is answered; ask again"
CLOSE = (b"connection", b"close")
NOT_KEPT = (b"cache-control", b"no-store")
"""Answers are about one person, and the next model's are others: nobody on the way keeps them."""


class TooLarge(Exception):
    """A body above the limit."""


class Passing:
    """One request on its way in and its answer on its way out; the body's size and time are kept here.

    An answer goes out at once. Where it does before the whole body is read, the connection ends: a moment later, since
    who is cut off while sending does not hear why, but not when its sender likes.
    """

    def __init__(self, scope: Scope, receive: Receive, send: Send) -> None:
        given: dict[bytes, bytes] = dict(scope["headers"])
        self.receive, self.send = receive, send
        self.status = self.read = 0
        self.more = b"transfer-encoding" in given or given.get(b"content-length", b"0") != b"0"
        """Whether some of the body has not been read."""
        self.late = False
        self.end = time.monotonic() + WHOLE_SECONDS

    @property
    def too_large(self) -> bool:
        return self.read > MOST_BYTES

    async def body(self) -> Message:
        """The next piece, for a route; who does not send it in time is as good as gone."""
        if not self.more:
            return await self.receive()
        message = await self._piece(min(BODY_SECONDS, self.end - time.monotonic()))
        self.read += len(message.get("body", b""))
        if self.too_large:
            raise TooLarge
        return message

    async def answer(self, message: Message) -> None:
        """What a route says, but not what it makes of half a body."""
        if self.status or not self.too_large:
            await self.out(message)

    async def out(self, message: Message) -> None:
        if message["type"] == "http.response.start":
            self.status = message["status"]
            headers = list(message.get("headers", ()))
            if all(name != NOT_KEPT[0] for name, _ in headers):
                headers.append(NOT_KEPT)
            if self.more and CLOSE not in headers:
                headers.append(CLOSE)
            message = {**message, "headers": headers}
        elif self.more and not message.get("more_body"):
            await self.send({**message, "more_body": True})
            await self._drain()
            message = {"type": "http.response.body"}
        await self.send(message)

    async def _piece(self, seconds: float) -> Message:
        try:
            if self.late:
                raise TimeoutError
            message = await asyncio.wait_for(self.receive(), seconds)
        except TimeoutError:
            self.late = True
            return {"type": "http.disconnect"}
        self.more = message.get("more_body", False)
        return message

    async def _drain(self) -> None:
        """Read what is still sent, up to a limit."""
        read, end = 0, time.monotonic() + DRAIN_SECONDS
        while self.more and not self.late and read < 8 * MOST_BYTES:
            read += len((await self._piece(end - time.monotonic())).get("body", b""))


class Door:
    """The outermost application; ``names`` are those by which it may be asked, None where any will do."""

    def __init__(
        self, app: ASGIApp, counts: Counts, token: str | None = None, names: frozenset[str] | None = LOCAL
    ) -> None:
        self.app, self.counts, self.names = app, counts, names
        self.token = None if token is None else f"Bearer {token}".encode()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            if scope["type"] == "lifespan":
                await self.app(scope, receive, send)
            return
        began, one = time.perf_counter(), Passing(scope, receive, send)
        try:
            refused = self.refusal(scope)
            if refused is not None:
                await plain_error(one.out, *refused)
            else:
                await self.app(scope, one.body, one.answer)
        except asyncio.CancelledError:  # the service ends, and this has taken all the time that was left
            if not one.status:
                await plain_error(one.out, 503, ENDING)
        except Exception as problem:  # FastAPI has answered already, without details
            if not one.too_large:
                log.error("a request failed: %s: %s", type(problem).__name__, " ".join(str(problem).split()))
        if one.too_large and not one.status:
            await plain_error(one.out, 413, TOO_LARGE)
        route = getattr(scope.get("route"), "path", "other").replace(":path", "")
        took = time.perf_counter() - began
        self.counts.request(route, one.status, took)
        if access.isEnabledFor(logging.INFO):
            access.info("%s %s %d %.1f ms", scope["method"], route, one.status, 1000 * took)

    def refusal(self, scope: Scope) -> tuple[int, str] | None:
        """Why a request is turned away before anything is read of it."""
        given: dict[bytes, bytes] = dict(scope["headers"])
        if self.names is not None:
            host = given.get(b"host", b"").decode("latin-1")
            name = host if host.endswith("]") else host.rpartition(":")[0] or host
            if name.lower() not in self.names:
                return 421, "this service answers on this machine alone; ask it as 127.0.0.1 or localhost"
        wanted = None if scope["path"] in OPEN else self.token
        if wanted is not None and not hmac.compare_digest(given.get(b"authorization", b""), wanted):
            return 401, "a token is needed: send the header Authorization: Bearer TOKEN"
        size = given.get(b"content-length", b"0")
        if size.isdigit() and int(size) > MOST_BYTES:
            return 413, TOO_LARGE
        return None


async def plain_error(send: Send, status: int, text: str) -> None:
    content = error_json(text)
    length = str(len(content)).encode()
    headers: list[Any] = [(b"content-type", b"application/json"), (b"content-length", length), CLOSE]
    if status == 401:
        headers.append((b"www-authenticate", b"Bearer"))
    if status == 503:
        headers.append((b"retry-after", b"1"))
    await send({"type": "http.response.start", "status": status, "headers": headers})
    await send({"type": "http.response.body", "body": content})


def error_json(text: str) -> bytes:
    return json.dumps({"error": " ".join(text.split())}).encode()
