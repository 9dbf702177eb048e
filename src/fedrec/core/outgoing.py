"""What clients receive of a server's state and the model they make of it; what is the same for everybody is made once.

A state of the server is never written to (law 1), so that the object itself tells one state from another.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from fedrec.core import wire
from fedrec.core.block import World
from fedrec.core.messages import personal_fields
from fedrec.core.method import Method
from fedrec.core.newcomers import new_download
from fedrec.data.ragged import Int64


class Outgoing:
    """Downloads and models of the server's present state, those that serve many clients kept until the next one."""

    def __init__(self, method: Method[Any, Any, Any, Any], form: wire.Form) -> None:
        self.method, self.form = method, form
        self._downloads: dict[str, tuple[Any, Any]] = {}  # of a state of the server
        self._models: dict[str, tuple[Any, Any]] = {}  # of a download

    def download(self, server: Any, clients: Int64) -> Any:
        """What these clients receive."""
        return self._kept("all", server, lambda: self.method.download(server, clients))

    def for_new(self, server: Any, world: World) -> Any:
        """What one new client receives."""
        return self._kept("new", server, lambda: new_download(self.method, server, world))

    def model(self, download: Any) -> Any:
        """What a client makes of a download, to score with."""
        for kind, (_, kept) in list(self._downloads.items()):
            if download is not kept:
                continue
            made_of, model = self._models.get(kind, (None, None))
            if made_of is not download:
                model = self.method.model(download)
                self._models[kind] = download, model
            return model
        return self.method.model(download)

    def _kept(self, kind: str, server: Any, make: Callable[[], Any]) -> Any:
        state, download = self._downloads.get(kind, (None, None))
        if download is not None and state is server:
            return download
        self._downloads.pop(kind, None)
        self._models.pop(kind, None)
        download = wire.rounded(make(), self.form)
        if kind == "new" or not personal_fields(download):
            self._downloads[kind] = server, download
        return download
