"""``fedrec serve`` beside a bare FastAPI route: the same client, the same machine, turns taken in one run.

    python benchmarks/serve.py RUN [--connections 1000] [--each 10] [--rounds 3]

RUN is the folder of a finished run, best one with the 3,706 items of ml-1m. Both services run in processes of their
own with an access log; each answers ``connections`` clients at once, who ask again as soon as they are answered.
"""

from __future__ import annotations

import argparse
import asyncio
import os
import re
import statistics
import subprocess
import sys
import tempfile
import time
import urllib.parse
from functools import partial
from pathlib import Path

from fedrec.experiment.open import opened
from load import Load, ask, many_files

BARE = """
import socket, uvicorn
from fastapi import FastAPI

app = FastAPI()

@app.get("/bare/{user}")
async def bare(user: str, k: int = 10):
    return {"user": user, "k": k}

made = socket.create_server(("127.0.0.1", 0), backlog=2048)
print(f"http://127.0.0.1:{made.getsockname()[1]} ", flush=True)
uvicorn.Server(uvicorn.Config(app)).run(sockets=[made])
"""


def started(log: Path, *command: str) -> tuple[subprocess.Popen[bytes], int]:
    """A service and its port; what it says goes into a file, so that it never waits for a reader."""
    with open(log, "wb") as out:
        unbuffered = {**os.environ, "PYTHONUNBUFFERED": "1"}
        process = subprocess.Popen(command, stdout=out, stderr=subprocess.STDOUT, env=unbuffered)
    while process.poll() is None:
        found = re.search(r"^http://127.0.0.1:(\d+) ", log.read_text(), re.MULTILINE)
        if found is not None:
            return process, int(found[1])
        time.sleep(0.1)
    raise SystemExit(f"the service did not start:\n{log.read_text()}")


def cpu_seconds(process: subprocess.Popen[bytes]) -> float:
    """What a process has cost so far: beside other work it says more than the clock."""
    fields = Path(f"/proc/{process.pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def cycled(paths: list[str], number: int) -> str:
    return paths[number % len(paths)]


def line(name: str, loads: list[Load], cpu: float) -> str:
    rate = statistics.median(load.rate for load in loads)
    p50, p99 = (statistics.median(load.percentile(share) for load in loads) for share in (0.5, 0.99))
    errors = sum(count for load in loads for status, count in load.statuses.items() if status != 200)
    times = f"p50 {p50:7.1f} ms   p99 {p99:7.1f} ms   cpu {cpu:.2f} ms an answer"
    return f"{name:<14} {rate:8.0f} answers/s   {times}   errors {errors}"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("run", type=Path)
    parser.add_argument("--connections", type=int, default=1000)
    parser.add_argument("--each", type=int, default=10)
    parser.add_argument("--rounds", type=int, default=3)
    given = parser.parse_args()
    many_files()
    known = opened(given.run).recommender
    users = [urllib.parse.quote(str(user), safe="") for user in known.user_ids.tolist()]
    logs = Path(tempfile.mkdtemp())
    services = {
        "bare FastAPI": (started(logs / "bare", sys.executable, "-c", BARE), "/bare/{}?k=10"),
        "fedrec serve": (
            started(logs / "ours", sys.executable, "-m", "fedrec.cli.main", "serve", str(given.run), "--port", "0"),
            "/recommend/{}?k=10",
        ),
    }
    loads: dict[str, list[Load]] = {name: [] for name in services}
    spent = dict.fromkeys(services, 0.0)
    try:
        for turn in range(given.rounds + 1):
            for name, ((process, port), path) in services.items():
                before = cpu_seconds(process)
                paths = [path.format(user) for user in users]
                load = asyncio.run(ask("127.0.0.1", port, partial(cycled, paths), given.connections, given.each))
                if turn:  # the first one warms up
                    loads[name].append(load)
                    spent[name] += cpu_seconds(process) - before
    finally:
        for (process, _), _ in services.values():
            process.terminate()
            process.wait()
    print(f"{given.connections} connections, {given.each} requests each, top 10 of {len(known.item_ids)} items")
    for name, found in loads.items():
        print(line(name, found, 1000 * spent[name] / sum(len(load.waited) for load in found)))
    bare, ours = (statistics.median(load.rate for load in loads[name]) for name in services)
    one, other = spent.values()
    print(f"share of the bare route's throughput: {ours / bare:.2f} by the clock, {one / other:.2f} by cpu time")


if __name__ == "__main__":
    main()
