"""``fedrec serve`` and ``fedrec deploy serve``: from a source to a service that listens."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from fedrec.deploy.ports import bound
from fedrec.serve import http
from fedrec.serve.app import service
from fedrec.serve.batches import Batches
from fedrec.serve.counts import Counts
from fedrec.serve.sources import Source
from fedrec.threads import thread_count


@dataclass(frozen=True)
class Place:
    """Where a service listens, and to whom."""

    host: str = "127.0.0.1"
    port: int = 8080
    token_file: Path | None = None
    quiet: bool = False
    """No access log."""


def serve(source: Source, place: Place, say: Callable[[str], None]) -> None:
    """Answer until interrupted."""
    thread_count()  # what the environment says is looked at now, not with the first request
    token = http.read_token(place.token_file)
    listening = bound(place.host, place.port)
    names = http.local_names(listening, place.host)
    http.log_to_stderr(not place.quiet)
    batches = Batches(source, Counts())
    known, about = batches.model.recommender, batches.model.about
    say(
        f"{http.address(listening)} serves {about['method']}, round {about['round']}: {len(known.user_ids)} users, "
        f"{len(known.item_ids)} items; /docs says what can be asked"
    )
    if token is None and names is None:
        say("WARNING: without --token-file, whoever reaches this port learns what anybody is recommended")
    http.serve(service(batches, token, names), listening)
