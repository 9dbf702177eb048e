"""Limits of a request's head: uvicorn's fast parser keeps whatever is sent, for as long as it takes."""

from __future__ import annotations

import asyncio
from typing import Any

from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol

MOST_HEAD = 1 << 16
"""Bytes of a request's first line and headers."""
HEAD_SECONDS = 20.0
"""Seconds from the beginning of a head to its end."""
REFUSAL = b'{"error": "the head of this request is larger than %d bytes; ask for less at once"}' % MOST_HEAD


class LimitedHeads(HttpToolsProtocol):
    """A connection whose requests must say soon, and shortly, what they want."""

    _head = 0
    """Bytes since the beginning of this head."""
    _waiting: asyncio.TimerHandle | None = None

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        super().connection_made(transport)
        self._begun()

    def connection_lost(self, exc: Exception | None) -> None:
        self._over()
        super().connection_lost(exc)

    def on_message_begin(self) -> None:
        super().on_message_begin()
        if self._waiting is None:  # not the first of this connection
            self._begun()

    def on_headers_complete(self) -> None:
        self._over()
        super().on_headers_complete()

    def data_received(self, data: bytes) -> None:
        if self._waiting is None and (self.cycle is None or self.cycle.response_complete):
            self._begun()  # an empty line before a request ends the wait for the next one, and begins no message
        if self._waiting is not None:
            self._head += len(data)
        super().data_received(data)
        if self._waiting is not None and self._head > MOST_HEAD and not self.transport.is_closing():
            head = b"HTTP/1.1 431 Request Header Fields Too Large\r\ncontent-type: application/json\r\n"
            self.transport.write(head + b"content-length: %d\r\nconnection: close\r\n\r\n" % len(REFUSAL) + REFUSAL)
            self.transport.close()

    def _begun(self) -> None:
        self._head, loop = 0, asyncio.get_running_loop()
        self._waiting = loop.call_later(HEAD_SECONDS, self._close)

    def _over(self) -> None:
        if self._waiting is not None:
            self._waiting.cancel()
            self._waiting = None

    def _close(self) -> Any:
        self._waiting = None
        self.transport.close()
