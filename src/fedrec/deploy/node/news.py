"""What happens on a node, in plain lines, out of its log: Flower's own words mean little to who runs a node."""

from __future__ import annotations

import re
import time
from collections.abc import Callable
from pathlib import Path

MARK = "node: "
"""Stands before a line of a node's log that is meant for people."""
AGAIN = 60.0
"""Seconds after which an outage that goes on is said once more."""

_CONNECTED = re.compile(r"SuperNode ID: \d+")
_FAILED = re.compile(r"Connection attempt failed, retrying in ([\d.]+) seconds")
_BACK = re.compile(r"Connection successful after ([\d.]+) seconds")
_OWN = re.compile(rf"\b{MARK}(.*)")


class News:
    """Follows a log from its present end."""

    def __init__(self, path: Path, say: Callable[[str], None], clock: Callable[[], float] = time.monotonic) -> None:
        self.path, self.say, self.clock = path, say, clock
        self.place = path.stat().st_size if path.is_file() else 0
        self._rest = ""
        self._outage: float | None = None
        """When it was last said that the server cannot be reached."""

    def look(self) -> None:
        """Say what was written since the last look."""
        if not self.path.is_file():
            return
        with open(self.path, encoding="utf-8", errors="replace") as handle:
            handle.seek(self.place)
            text = self._rest + handle.read()
            self.place = handle.tell()
        *lines, self._rest = text.split("\n")
        for line in lines:
            self._read(line)

    def _read(self, line: str) -> None:
        if found := _OWN.search(line):
            self.say(found[1])
        elif _CONNECTED.search(line):
            self._outage = None
            self.say("connected")
        elif found := _FAILED.search(line):
            now = self.clock()
            if self._outage is None or now - self._outage > AGAIN:
                self._outage = now
                self.say(f"the server cannot be reached; trying again in {float(found[1]):.0f} s")
        elif (found := _BACK.search(line)) and self._outage is not None:
            self._outage = None
            self.say(f"connected again after {float(found[1]):.0f} s")
