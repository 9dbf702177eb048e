"""What the public port answers, and to whom: the calls of an admitted node, and nothing else.

Flower serves three interfaces on one port. Control (register keys, start, list and stop runs) and Runtime (tasks)
belong to the operator; only Fleet belongs to nodes. The door lets ten Fleet calls through, and these only when the
caller proves to hold a key that was admitted and not revoked. Everything else, descriptions of the interface
included, is answered 404 before a byte of the body is read.
"""

from __future__ import annotations

import base64
import binascii
import datetime
from collections.abc import Awaitable, Callable, MutableMapping
from typing import Any

from fedrec.deploy.admission import verified

Scope = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[MutableMapping[str, Any]]]
Send = Callable[[MutableMapping[str, Any]], Awaitable[None]]
App = Callable[[Scope, Receive, Send], Awaitable[None]]

CALLS = frozenset(
    f"/v1/fleet/{name}"
    for name in (
        "activate-node",
        "deactivate-node",
        "send-node-heartbeat",
        "pull-messages",
        "push-messages",
        "get-run",
        "get-fab",
        "push-object",
        "pull-object",
        "confirm-message-received",
    )
)
"""What a node calls. Registering and unregistering itself are not among them: that is the operator's."""
LARGEST_BODY = 32 << 20
"""Bytes. Flower cuts what is large into objects of 5 MiB."""
WINDOW = 305.0
"""Seconds that a signed time may lie behind, as Flower has it; it may be 5 s ahead."""
KEY, SIGNATURE, TIME = b"flwr-public-key", b"flwr-signature", b"flwr-timestamp"


class Door:
    """An ASGI application before Flower's own."""

    def __init__(
        self, app: App, admitted: Callable[[], frozenset[bytes]], saw: Callable[[bytes], None] = lambda key: None
    ) -> None:
        self.app, self.admitted, self.saw = app, admitted, saw

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "websocket":
            await send({"type": "websocket.close", "code": 1008})
        if scope["type"] != "http":
            return
        status = self._refusal(scope)
        if status:
            headers = [(b"content-length", b"0"), (b"connection", b"close")]
            await send({"type": "http.response.start", "status": status, "headers": headers})
            await send({"type": "http.response.body", "body": b""})
            return
        await self.app(scope, _limited(receive), send)

    def _refusal(self, scope: Scope) -> int:
        """The status with which a request is turned away; 0 for one that may pass."""
        if scope["method"] != "POST" or scope["path"] not in CALLS:
            return 404
        given: dict[bytes, list[bytes]] = {}
        for name, value in scope["headers"]:
            given.setdefault(name.lower(), []).append(value)
        length = given.get(b"content-length", [b"0"])
        if len(length) != 1 or not length[0].isdigit() or int(length[0][:20]) > LARGEST_BODY:
            return 413
        return 0 if self._proves_a_key(given) else 401

    def _proves_a_key(self, given: dict[bytes, list[bytes]]) -> bool:
        """Whether the caller has signed the time of now with an admitted key."""
        parts = [given.get(name, []) for name in (KEY, SIGNATURE, TIME)]
        if any(len(values) != 1 or len(values[0]) > 4096 for values in parts):
            return False
        try:
            key = base64.b64decode(parts[0][0], validate=True)
            signature = base64.b64decode(parts[1][0], validate=True)
            signed = datetime.datetime.fromisoformat(parts[2][0].decode("ascii"))
            age = (datetime.datetime.now(datetime.UTC) - signed).total_seconds()
        except (ValueError, TypeError, binascii.Error):
            return False
        if not -5.0 < age < WINDOW or key not in self.admitted():
            return False
        proven = verified(key, parts[2][0], signature)
        if proven:
            self.saw(key)
        return proven


def _limited(receive: Receive) -> Receive:
    """The body as it comes, up to the limit: a client may send more than it declared."""
    left = LARGEST_BODY

    async def limited() -> MutableMapping[str, Any]:
        nonlocal left
        message = await receive()
        left -= len(message.get("body", b""))
        return message if left >= 0 else {"type": "http.disconnect"}

    return limited
