"""Memory: what is free for us on this machine or in this container, and what a process holds."""

from __future__ import annotations

import os
from pathlib import Path

MIB = 1 << 20
ROOMY_MB = 16384
"""Free memory above which what a run may keep grows with it."""
GROUPS = (
    ("memory.max", "memory.current", "memory.stat", "inactive_file"),  # version 2
    ("memory/memory.limit_in_bytes", "memory/memory.usage_in_bytes", "memory/memory.stat", "total_inactive_file"),
)
"""Of the control group that we run in: limit, use, and what of the use are files that can be let go."""


def available_mb(meminfo: Path = Path("/proc/meminfo"), groups: Path = Path("/sys/fs/cgroup")) -> float:
    """Memory that is free for us, in MiB: the machine's, or what a container's limit leaves of it."""
    free = [_left(groups, *names) for names in GROUPS]
    try:
        found = [line for line in meminfo.read_text("ascii").splitlines() if line.startswith("MemAvailable:")]
        free.append(int(found[0].split()[1]) / 1024)
    except (OSError, ValueError, IndexError):
        free.append(4096.0)
    return min(free)


def kept_mb(working_mb: float, free_mb: float | None = None) -> float:
    """What a run with so much working memory may hold until its round ends, before it goes to disk.

    Half of it; where more than 16 GiB are free, more in proportion: a disk is many times slower than memory that
    nobody uses.

    >>> kept_mb(1024, 8000), kept_mb(1024, 131072)
    (512.0, 4096.0)
    """
    free = available_mb() if free_mb is None else free_mb
    return working_mb / 2 * max(1.0, free / ROOMY_MB)


def resident_mb(process: int) -> float:
    """What a process holds now, in MiB; 0 where that cannot be seen."""
    try:
        with open(f"/proc/{process}/statm", encoding="ascii") as file:
            return int(file.read().split()[1]) * os.sysconf("SC_PAGE_SIZE") / MIB
    except (OSError, ValueError, IndexError):
        return 0.0


def _left(folder: Path, limit: str, used: str, details: str, cached: str) -> float:
    try:
        most, now = (int((folder / name).read_text("ascii")) for name in (limit, used))
        found = dict(line.split() for line in (folder / details).read_text("ascii").splitlines())
        return max(0.0, (most - now + int(found.get(cached, 0))) / MIB)
    except (OSError, ValueError):  # there is no such group, or it has no limit ("max")
        return float("inf")
