"""Top-10 lists of 100,000 users out of a stored model, to Parquet: seconds, from opening the folder to the last row.

    python benchmarks/recommend.py [USERS [ITEMS [METHOD]]]

The model is trained first and its data is then no longer needed; `fedrec recommend` is run as a person runs it, in a
process of its own.
"""

from __future__ import annotations

import resource
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import fedrec


def main(users: int = 100_000, items: int = 10_000, method: str = "fedspectral") -> None:
    """Train, recommend, say how long it took."""
    data = f"scale:users={users},items={items},interactions={20 * users}"
    with tempfile.TemporaryDirectory() as home:
        run, table = Path(home) / "run", Path(home) / "top.parquet"
        fedrec.run(method, data=data, rounds=1, evaluate_users=100, out=run)
        for attempt in ("first, kernels compiled if they were not yet", "again"):
            began, used = time.perf_counter(), cpu_seconds()
            command = [sys.executable, "-m", "fedrec.cli.main", "recommend", str(run), "--all", "--out", str(table)]
            subprocess.run([*command, "--quiet"], check=True, stdout=subprocess.DEVNULL)
            seconds = time.perf_counter() - began
            size = table.stat().st_size / (1 << 20)
            cpu = cpu_seconds() - used
            said = f"{seconds:.1f} s ({cpu:.1f} s of processors), {size:.1f} MiB"
            print(f"{method}, {users} users, {items} items: {said} ({attempt})", flush=True)


def cpu_seconds() -> float:
    """Processor time of all processes that were started and have ended."""
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


if __name__ == "__main__":
    main(*map(int, sys.argv[1:3]), *sys.argv[3:])
