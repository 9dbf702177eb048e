"""A sign of life beside a run: without it nobody can tell a run that works from one whose server was killed.

While a run is carried out, ``pulse`` in its folder is touched every few seconds, and ``stop`` is looked for: who may
write there may end the run.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from shlex import quote

from fedrec.deploy.server.job import read_served

PULSE, STOP = "pulse", "stop"
EVERY = 2.0
"""Seconds between two signs of life."""
SILENT = 15.0
"""Seconds without one after which nobody is there."""
CARRIED = ("waiting for nodes", "running")
"""States of a run that somebody carries out."""
ENDED = ("done", "stopped", "failed")
"""States of one that nobody does."""


@contextmanager
def beating(folder: Path, stop: Callable[[], None]) -> Iterator[None]:
    """Show that the run in a folder is carried out; ``stop`` is called, once, when somebody asks for its end."""
    (folder / STOP).unlink(missing_ok=True)
    over = threading.Event()

    def beat() -> None:
        asked = False
        while True:
            (folder / PULSE).touch(mode=0o600)
            if not asked and (folder / STOP).exists():
                asked = True
                stop()
            if over.wait(EVERY):
                return

    thread = threading.Thread(target=beat, daemon=True)
    thread.start()
    try:
        yield
    finally:
        over.set()
        thread.join()
        (folder / PULSE).unlink(missing_ok=True)


def silence(folder: Path) -> float | None:
    """Seconds since a run's last sign of life; None where it has none."""
    try:
        return max(0.0, time.time() - (folder / PULSE).stat().st_mtime)
    except FileNotFoundError:
        return None


def alive(folder: Path) -> bool:
    """Whether somebody carries this run out now."""
    quiet = silence(folder)
    return quiet is not None and quiet < SILENT


def state_of(folder: Path) -> str:
    """Where a run stands, in a few words that are true: what the server said last counts while it lives."""
    said = read_served(folder)
    if said is None:
        return "not started, or waiting for another run to end"
    state = str(said.get("state"))
    if state not in CARRIED or alive(folder):
        return state
    quiet = silence(folder)
    since = "" if quiet is None else f" {duration(quiet)} ago"
    again = f"fedrec deploy run --resume {quote(str(folder))}"
    return f"interrupted (the server was last heard of{since}; go on with `{again}`)"


def duration(seconds: float) -> str:
    """A span of time as people say it."""
    for unit, length in (("d", 86_400), ("h", 3_600), ("min", 60)):
        if seconds >= length:
            return f"{seconds / length:.0f} {unit}"
    return f"{seconds:.0f} s"
