"""Limits of a connection: a request's head has a size and a time, and who is answered has to read.

uvicorn's fast parser keeps whatever is sent, for as long as it takes, and its answers wait for whoever asked.
"""

from __future__ import annotations

import asyncio
from typing import Any

from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol

MOST_HEAD = 1 << 16
"""Bytes of a request's first line and headers."""
HEAD_SECONDS = 20.0
"""Seconds from the beginning of a head to its end."""
READ_SECONDS, READ_BYTES = 20.0, 1 << 18
"""In so many seconds who is answered takes so many bytes, or all that waits: until then it is kept in memory."""
TOO_LARGE = (
    b"431 Request Header Fields Too Large",
    b'{"error": "the head of this request is larger than %d bytes; ask for less at once"}' % MOST_HEAD,
)
NO_REQUEST = b"400 Bad Request", b'{"error": "this is no request that can be read; send one of HTTP/1.1"}'


class LimitedHeads(HttpToolsProtocol):
    """A connection whose requests must say soon, and shortly, what they want, and whose answers must be read."""

    _head = 0
    """Bytes since the beginning of this head."""
    _waiting: asyncio.TimerHandle | None = None
    _unread: asyncio.TimerHandle | None = None
    """Runs while more waits to be read than the connection takes."""

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        super().connection_made(transport)
        self._begun()

    def connection_lost(self, exc: Exception | None) -> None:
        self._over()
        self._taken()
        super().connection_lost(exc)

    def pause_writing(self) -> None:
        super().pause_writing()
        self._look(self.transport.get_write_buffer_size())

    def resume_writing(self) -> None:
        self._taken()
        super().resume_writing()

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
            self._refuse(*TOO_LARGE)

    def send_400_response(self, msg: str) -> None:
        """What the parser cannot read is refused in one line of JSON, as everything is."""
        self._refuse(*(TOO_LARGE if self._head > MOST_HEAD else NO_REQUEST))

    def _refuse(self, status: bytes, content: bytes) -> None:
        head = b"HTTP/1.1 %s\r\ncontent-type: application/json\r\ncache-control: no-store\r\n" % status
        self.transport.write(head + b"content-length: %d\r\nconnection: close\r\n\r\n" % len(content) + content)
        self.transport.close()

    def _begun(self) -> None:
        self._head, loop = 0, asyncio.get_running_loop()
        self._waiting = loop.call_later(HEAD_SECONDS, self._close)

    def _over(self) -> None:
        if self._waiting is not None:
            self._waiting.cancel()
            self._waiting = None

    def _look(self, before: int) -> None:
        self._unread = asyncio.get_running_loop().call_later(READ_SECONDS, self._read_on, before)

    def _read_on(self, before: int) -> None:
        left = self.transport.get_write_buffer_size()
        if left <= before - READ_BYTES:
            self._look(left)
        else:
            self.transport.abort()  # a close would wait for the rest to be read

    def _taken(self) -> None:
        if self._unread is not None:
            self._unread.cancel()
            self._unread = None

    def _close(self) -> Any:
        self._waiting = None
        self.transport.close()
