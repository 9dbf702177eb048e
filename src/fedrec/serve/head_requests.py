"""HEAD: the answer that GET would get, without its body. Load balancers ask so."""

from __future__ import annotations

from typing import Any

from starlette.types import ASGIApp, Receive, Scope, Send


class HeadAsGet:
    """Asks an application GET where HEAD was asked; the server, which still knows, sends no body."""

    def __init__(self, app: ASGIApp) -> None:
        self.app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http" or scope["method"] != "HEAD":
            await self.app(scope, receive, send)
            return
        asked: dict[str, Any] = {**scope, "method": "GET"}
        try:
            await self.app(asked, receive, send)
        finally:
            if "route" in asked:
                scope["route"] = asked["route"]  # for the log


def allowed(methods: str) -> str:
    """What the header ``Allow`` is to say, HEAD beside GET.

    >>> allowed("GET"), allowed("POST")
    ('GET, HEAD', 'POST')
    """
    found = [one.strip() for one in methods.split(",")]
    return ", ".join([*found, "HEAD"] if "GET" in found and "HEAD" not in found else found)
