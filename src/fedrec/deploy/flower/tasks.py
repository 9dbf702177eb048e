"""One piece of work from Flower, done by the application that is installed here.

Flower ships an application with every run and has its own helpers install and load what was shipped. Those helpers
are not used: server and node take tasks from Flower's Runtime interface themselves and do them with the fedrec that
is installed. What was shipped is only compared: its hash must be that of this version's own bundle.
"""

from __future__ import annotations

import hashlib
import logging
import os
import secrets
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

from fedrec.deploy.flower.bundle import write_bundle
from fedrec.runs.atomic import private_opener

PATIENCE = 10.0
"""Seconds for which a call on this machine is tried again: longer, and the other side is gone."""

GROWTH, REST = 0.1, 1.5
"""The longer there was no task, the less often one is looked for: the next look is this share of that time away, up to
so many seconds. Looking costs a processor, and many nodes of one machine look at once."""


class ForeignApplication(Exception):
    """A run that brings another application than the one installed here."""


@dataclass(frozen=True)
class Link:
    """How an interface of Flower's is reached; ``ca`` is the certificate that its own must be signed by, under TLS."""

    address: str
    ca: Path | None = None

    @property
    def named(self) -> dict[str, Any]:
        """The same for Flower's clients."""
        certificates = None if self.ca is None else self.ca.read_bytes()
        return {"server_address": self.address, "insecure": self.ca is None, "root_certificates": certificates}

    def runtime(self, *interceptors: Any, patient: bool = True) -> Any:
        """A client of the Runtime interface; a ``patient`` one tries again by itself."""
        from flwr.supercore.interceptors import RuntimeVersionHttpInterceptor
        from flwr.supercore.retry import make_simple_http_retry_invoker
        from flwr.supercore.runtime import RuntimeHttpClient

        retry = make_simple_http_retry_invoker() if patient else None
        if retry is not None:
            retry.max_time = PATIENCE
        return RuntimeHttpClient.from_server_address(
            **self.named,
            interceptors=[RuntimeVersionHttpInterceptor(component_name="SuperExec"), *interceptors],
            retry_invoker=retry,
        )


def new_secret(folder: Path) -> Path:
    """A file with a secret of this start alone: only who can read it is given tasks."""
    path = folder / ".task-secret"
    path.unlink(missing_ok=True)
    with open(path, "xb", opener=private_opener) as handle:
        handle.write(secrets.token_bytes(32))
    return path


def plain_log() -> None:
    """What this process has to say, line by line; Flower's calls on this machine are not worth one each."""
    logging.basicConfig(level=logging.INFO, format="%(asctime)s %(message)s")
    logging.getLogger("httpx").setLevel(logging.WARNING)


def waiting_tasks(link: Link, kind: str, secret: bytes, alive: Callable[[], bool], poll: float = 0.1) -> Iterator[str]:
    """Tokens of tasks of one kind as they come, while ``alive``. Only who has the secret is given any."""
    import httpx
    from flwr.proto.runtime_pb2 import AcquireTaskRequest
    from flwr.supercore.interceptors import SuperExecAuthHttpInterceptor

    signed = SuperExecAuthHttpInterceptor(
        master_secret=secret, protected_methods=frozenset({"/flwr.proto.Runtime/AcquireTask"})
    )
    client = link.runtime(signed, patient=False)
    busy = time.monotonic()
    while alive():
        try:
            found = client.AcquireTask(AcquireTaskRequest(supported_task_types=[kind]))
        except httpx.HTTPError:  # not up yet, or going down
            time.sleep(max(poll, 0.5))
            continue
        if found.HasField("task") and found.token:
            yield found.token
            busy = time.monotonic()
        else:
            time.sleep(max(poll, min(REST, GROWTH * (time.monotonic() - busy))))


@contextmanager
def claimed(client: Any, lost: Callable[[], None] = lambda: None) -> Iterator[None]:
    """While a task is worked on, Flower hears that it is; ``lost`` is called when Flower has given it up."""
    import httpx
    from flwr.proto.runtime_pb2 import SendTaskHeartbeatRequest
    from flwr.supercore.heartbeat import HeartbeatSender

    def beat() -> bool:
        try:
            if not client.SendTaskHeartbeat(SendTaskHeartbeatRequest()).success:
                lost()
        except httpx.HTTPError:
            return False
        return True

    sender = HeartbeatSender(beat)
    sender.start()
    try:
        yield
    finally:
        if sender.is_running:
            sender.stop()


@cache
def own_application() -> str:
    """The hash of the bundle that this version ships."""
    from flwr.cli.build import build_fab_from_disk

    with tempfile.TemporaryDirectory(prefix="fedrec-bundle-") as folder:
        return hashlib.sha256(build_fab_from_disk(write_bundle(Path(folder)))).hexdigest()


def refuse_foreign(shipped: bytes) -> None:
    """Refuse a run whose application is not the one installed here."""
    found = hashlib.sha256(shipped).hexdigest()
    if found != own_application():
        raise ForeignApplication(
            f"the run brings the application {found[:16]}, and this machine runs only its own, {own_application()[:16]}"
        )


def leave_with(parent: int, before: Callable[[], None] = lambda: None) -> None:
    """End this process when its parent is gone; ``before`` is done first."""

    def watch() -> None:
        while os.getppid() == parent:
            time.sleep(0.5)
        before()
        os._exit(0)  # in the middle of work too: files are whole at every moment

    threading.Thread(target=watch, daemon=True).start()
