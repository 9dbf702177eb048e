"""When each admitted key was last heard of; ``seen.json`` in the server's folder, written by the door."""

from __future__ import annotations

import json
import time
from pathlib import Path

from fedrec.deploy.admission import fingerprint
from fedrec.runs.atomic import write_text

SEEN = "seen.json"
EVERY = 5.0
"""Seconds between two writings: a node calls many times a second."""


class Presence:
    """Remembers callers for the operator's eyes; nothing is decided by it."""

    def __init__(self, home: Path) -> None:
        self.path = home / SEEN
        self._seen: dict[str, float] = last_seen(home)
        self._written = 0.0

    def saw(self, key: bytes) -> None:
        now = time.time()
        self._seen[fingerprint(key)] = now
        if now - self._written > EVERY:
            self._written = now
            write_text(self.path, json.dumps(self._seen), private=True)


def last_seen(home: Path) -> dict[str, float]:
    """Times (seconds since 1970) by the key's fingerprint."""
    try:
        found = json.loads((home / SEEN).read_text(encoding="utf-8"))
        return {str(name): float(when) for name, when in found.items()}
    except (FileNotFoundError, ValueError, TypeError, AttributeError):
        return {}  # written anew with the next call
