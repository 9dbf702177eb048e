"""Who works on which trial: files that only one worker can make, on any number of machines that share a folder.

The claim of trial 7 is ``0007.0``, made with O_EXCL. While its holder lives it touches the file; one that has not been
touched for ``LEASE`` seconds, or whose process is gone, is lapsed, and the next worker makes ``0007.1``. No claim is
ever removed, so two workers cannot both take over: the highest number holds, and a worker that wakes up late sees it.
"""

from __future__ import annotations

import json
import os
import threading
from contextlib import suppress
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from tempfile import gettempdir
from typing import TextIO

from fedrec.runs.alone import locked
from fedrec.runs.atomic import plain_opener, private_opener

LEASE, BEAT = 90.0, 15.0
"""Seconds after which a silent claim lapses, and between two touches."""


class Lost(Exception):
    """Somebody else holds the claim now: what we have of the trial is not ours to write."""


@dataclass
class Claim:
    """Our hold on one trial, kept up by a thread until it is let go."""

    path: Path
    _ended: threading.Event = field(default_factory=threading.Event)

    def __post_init__(self) -> None:
        threading.Thread(target=self._beat, daemon=True).start()

    def check(self) -> None:
        """Still ours; :class:`Lost` where it is not."""
        stem, _, number = self.path.name.partition(".")
        if _latest(self.path.parent, stem) != int(number):
            raise Lost(self.path.name)

    def release(self) -> None:
        """Let go: the next worker need not wait for the lease to lapse."""
        self._ended.set()
        with suppress(OSError):
            os.utime(self.path, (0, 0))

    def _beat(self) -> None:
        while not self._ended.wait(BEAT):
            with suppress(OSError):
                os.utime(self.path)
        with suppress(OSError):  # a touch that was under way when we let go
            os.utime(self.path, (0, 0))


def place(places: int, name: str) -> TextIO | None:
    """A place among those of this machine for something, such as its GPU, until the file is closed; None: all taken.

    A process that dies lets go of its place.
    """
    mine = os.getuid() if hasattr(os, "getuid") else 0  # where nobody has a number, the folder is the user's own
    for number in range(places):
        file = open(Path(gettempdir()) / f"{name}-{mine}-{number}.lock", "w", encoding="ascii", opener=private_opener)  # noqa: SIM115
        if locked(file.fileno()):
            return file
        file.close()
    return None


def take(folder: Path, trial: int) -> Claim | None:
    """The claim of a trial, if nobody holds it."""
    folder.mkdir(parents=True, exist_ok=True)
    stem = f"{trial:04d}"
    latest = _latest(folder, stem)
    if latest >= 0 and not lapsed(folder / f"{stem}.{latest}"):
        return None
    path = folder / f"{stem}.{latest + 1}"
    try:
        handle = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o644)
    except FileExistsError:
        return None
    with os.fdopen(handle, "w") as file:
        json.dump({"place": _place(), "process": os.getpid(), "born": _born(os.getpid())}, file)
    return Claim(path)


def held(folder: Path, trial: int) -> bool:
    """Whether somebody works on a trial now."""
    stem = f"{trial:04d}"
    latest = _latest(folder, stem)
    return latest >= 0 and not lapsed(folder / f"{stem}.{latest}")


def lapsed(path: Path) -> bool:
    """Whether the holder of a claim has let go, is gone, or has been silent for too long."""
    try:
        touched = path.stat().st_mtime
        if touched == 0 or _now(path.parent) - touched > LEASE:
            return True
        about = json.loads(path.read_text(encoding="ascii"))
    except (OSError, ValueError):
        return False  # just being made
    here = isinstance(about, dict) and about.get("place") == _place()
    return here and _born(int(about["process"])) != about["born"]


def _now(folder: Path) -> float:
    """The clock that the folder's files are stamped with: a file server's may not be ours."""
    probe = folder / ".clock"
    with open(probe, "w", opener=plain_opener) as file:
        os.utime(probe)
        return os.fstat(file.fileno()).st_mtime


@cache
def _place() -> str:
    """Where process numbers mean what they mean here: this boot of this machine, this namespace."""
    try:
        return Path("/proc/sys/kernel/random/boot_id").read_text().strip() + os.readlink("/proc/self/ns/pid")
    except OSError:
        return ""


def _born(process: int) -> str:
    """When a process began, as the system counts; empty where there is none or it has ended."""
    try:
        words = Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()
    except OSError:
        return ""
    return "" if words[0] in "ZX" else words[19]


def _latest(folder: Path, stem: str) -> int:
    """Number of the newest claim; -1 where there is none."""
    numbers = [int(name[len(stem) + 1 :]) for name in os.listdir(folder) if name.startswith(f"{stem}.")]
    return max(numbers, default=-1)
