"""Many nodes on one machine: memory, seconds and bytes of a real federation over loopback.

    python benchmarks/nodes.py [--nodes 50] [--rounds 10] [--method fedspectral] [--data ml-100k] [--users N]
                               [--node-sums]

Every node is what ``fedrec deploy node`` starts: processes of its own, its own file, its own key, TLS, admitted by the
server. ``--users N`` puts a synthetic world of N users in place of the data (one node with 100,000 users:
``--nodes 1 --users 100000 --rounds 3 --node-sums``). Memory is the proportional share of each process (pages that
several have count once), at its highest.
"""

from __future__ import annotations

import argparse
import contextlib
import os
import statistics
import tempfile
import threading
import time
from collections import defaultdict
from itertools import pairwise
from pathlib import Path
from typing import Any

from fedrec.core.loop import Record
from fedrec.deploy.processes import TAG
from fedrec.deploy.trying import try_out
from fedrec.experiment.resolve import resolve

MIB = 1 << 20
KINDS = {"flower.supernode": "Flower's part", "node_process": "node's work", "fedrec.deploy.flower": "server"}
"""By a word of the command; the first that fits."""


class Processes:
    """Looks at the processes of a federation again and again: their memory, and what they have cost."""

    def __init__(self, below: Path, every: float = 3.0) -> None:
        self.mark, self.every, self.over = str(below).encode(), every, threading.Event()
        self.peaks: dict[str, dict[int, float]] = defaultdict(dict)
        self.cpu: dict[str, dict[int, float]] = defaultdict(dict)
        """Seconds of a processor by kind and process, so far."""
        self.whole = 0.0
        self.thread = threading.Thread(target=self._watch, daemon=True)

    def __enter__(self) -> Processes:
        self.thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.over.set()
        self.thread.join()

    def _watch(self) -> None:
        while not self.over.wait(self.every):
            found = 0.0
            for entry in Path("/proc").glob("[0-9]*"):
                with contextlib.suppress(OSError, ValueError):
                    if TAG.encode() not in (environ := (entry / "environ").read_bytes()) or self.mark not in environ:
                        continue
                    command = (entry / "cmdline").read_bytes().decode(errors="replace")
                    kind = next((said for word, said in KINDS.items() if word in command), "other")
                    size = self._share(entry)
                    found += size
                    self.peaks[kind][int(entry.name)] = max(size, self.peaks[kind].get(int(entry.name), 0.0))
                    fields = (entry / "stat").read_text().rpartition(")")[2].split()
                    self.cpu[kind][int(entry.name)] = (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")
            self.whole = max(self.whole, found)

    @staticmethod
    def _share(entry: Path) -> float:
        for line in (entry / "smaps_rollup").read_text().splitlines():
            if line.startswith("Pss:"):
                return int(line.split()[1]) * 1024 / MIB
        return 0.0


def world_of(users: int, folder: Path) -> str:
    """A synthetic world of so many users, as a file."""
    import numpy as np

    rng = np.random.default_rng(0)
    items, each = 20_000, 8
    taste = rng.integers(0, 50, users)
    rows = (taste[:, None] * 400 + (rng.random((users, each)) ** 2 * 400).astype(np.int64)) % items
    path = folder / "world.csv"
    with open(path, "w", encoding="utf-8") as handle:
        handle.write("user,item,time\n")
        for user, own in enumerate(rows.tolist()):
            handle.writelines(f"u{user},i{item},{time}\n" for time, item in enumerate(dict.fromkeys(own)))
    return str(path)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--nodes", type=int, default=50)
    parser.add_argument("--rounds", type=int, default=10)
    parser.add_argument("--method", default="fedspectral")
    parser.add_argument("--data", default="ml-100k")
    parser.add_argument("--users", type=int)
    parser.add_argument("--node-sums", action="store_true", help="nodes add up their clients")
    parser.add_argument("--out", type=Path, help="a new folder to keep, with all logs")
    given = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="fedrec-nodes-") as temporary:
        folder = (given.out or Path(temporary)).resolve()
        folder.mkdir(parents=True, exist_ok=True)
        data = given.data if given.users is None else world_of(given.users, folder)
        measure(folder / "federation", given, data)


def measure(folder: Path, given: Any, data: str) -> None:
    changed: dict[str, Any] = {"data": "federation", "runtime": "flower", "nodes": given.nodes, "rounds": given.rounds}
    changed["node_sums"] = given.node_sums
    chosen = resolve(given.method, changed)
    began = time.perf_counter()
    marks: list[float] = []
    records: list[Record] = []
    costs: list[dict[str, float]] = []

    def on_round(record: Record, _: object) -> None:
        marks.append(time.perf_counter() - began)
        costs.append({kind: sum(each.values()) for kind, each in dict(memory.cpu).items()})
        records.append(record)
        print(f"  round {record.round:2d} after {marks[-1]:6.1f} s: {record.participants} clients, "
              f"missing {len(record.missing)}", flush=True)  # fmt: skip

    with Processes(folder) as memory:
        try_out(folder, chosen, data, on_round, lambda line: None)
    report(given, memory, marks, records, costs)


def report(
    given: Any, memory: Processes, marks: list[float], records: list[Record], costs: list[dict[str, float]]
) -> None:
    print(f"{given.method}: {given.nodes} nodes, {len(records)} rounds complete, {os.cpu_count()} cores")
    print(f"  first round after {marks[0]:.0f} s (keys, {given.nodes} nodes started, met, trained)")
    apart = [after - before for before, after in pairwise(marks)]
    if apart:
        print(f"  seconds a round: {statistics.median(apart):.1f} (median), {max(apart):.1f} (longest)")
    parts = {name: statistics.mean(r.seconds[name] for r in records) for name in records[0].seconds}
    print("  of the server's clock: " + ", ".join(f"{name} {value:.2f} s" for name, value in parts.items()))
    for way in ("upload", "download"):
        print(f"  {way} per client and round: {statistics.mean(r.bytes[way] for r in records) / 1024:.1f} KiB")
    for kind, peaks in sorted(memory.peaks.items()):
        print(f"  {kind}: {len(peaks)} processes, {statistics.mean(peaks.values()):.0f} MiB each on average, "
              f"{max(peaks.values()):.0f} MiB the largest")  # fmt: skip
    for kind, before in costs[0].items() if apart else ():
        spent = (costs[-1][kind] - before) / len(apart)
        print(f"  {kind}: {spent:.2f} s of a processor a round, {1000 * spent / given.nodes:.0f} ms a node and round")
    own = sum(sum(memory.peaks[kind].values()) for kind in ("Flower's part", "node's work"))
    print(f"  memory: {own / given.nodes:.0f} MiB a node, {memory.whole / 1024:.1f} GiB in all at its highest")
    print(f"  missing: {sum(len(r.missing) for r in records)}")


if __name__ == "__main__":
    main()
