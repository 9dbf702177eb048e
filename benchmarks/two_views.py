"""Seconds and memory of two-table methods: one round on ml-1m, and FedIAR's server step.

    FEDREC_DATA=... python benchmarks/two_views.py [--clients 6040] [--fed3cr] [--fediar] [--server]

Without a choice all three are measured, each in a process of its own, so that a memory peak is its own. With fewer
clients the time of all is extrapolated (work is linear in clients). Processor seconds stand beside wall-clock seconds,
because a busy machine stretches the latter most; the last line says how busy it was. Where ml-1m is not at hand, a
made-up world of its shape is taken. Kernels are compiled and libraries imported by a small round that is not counted.
"""

from __future__ import annotations

import argparse
import os
import resource
import subprocess
import sys
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "src"))

import numpy as np

from fedrec.core.method import Keys

ML_1M = "scale:users=6040,items=3706,interactions=1000209"
"""A world of ml-1m's shape."""


def one_round(method: str, clients: int, settings: dict[str, object], target: str) -> None:
    """One round of local work and aggregation on ml-1m, without judging."""
    from fedrec.errors import BadInput
    from fedrec.experiment.prepare import prepare
    from fedrec.experiment.resolve import resolve

    given = {"protocol": "strict", "keep_selected": False, "settings": settings}
    try:
        data = "ml-1m"
        prepared = prepare(resolve(method, {**given, "data": data}))
    except BadInput:
        data = "a made-up world of ml-1m's shape"
        prepared = prepare(resolve(method, {**given, "data": ML_1M}))
    chosen = np.arange(min(clients, prepared.people.world.n_clients))
    prepared.runtime.round(1, chosen[:4], chosen[:4], False)  # compile
    wall, processor = time.perf_counter(), time.process_time()
    prepared.runtime.round(2, chosen, chosen, False)
    wall, processor = time.perf_counter() - wall, time.process_time() - processor
    whole = prepared.people.world.n_clients / len(chosen)
    memory = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20
    print(
        f"{method} on {data}: {len(chosen)} clients in {wall:.1f} s ({processor:.1f} s of processor time); "
        f"all {prepared.people.world.n_clients}: {wall * whole:.0f} s ({processor * whole:.0f}); "
        f"peak {memory:.1f} GiB (target: {target})",
        flush=True,
    )


def server_step(n_items: int, target: str = "", dim: int = 32) -> None:
    """FedIAR's exploration (Eq. 4-16), cold (the first round) and warm-started (all others)."""
    from fedrec.methods.fediar import FedIar, IarServer

    method = FedIar()
    server = IarServer(np.random.default_rng(0).normal(size=(n_items, dim)).astype(np.float32))
    for label in ("cold", "warm"):
        wall, processor = time.perf_counter(), time.process_time()
        _, mixture = method.exploration(server, Keys(0, 1))
        wall, processor = time.perf_counter() - wall, time.process_time() - processor
        print(
            f"fediar server step, {n_items} items, {label}: {wall:.2f} s ({processor:.2f} s of processor time)"
            + (f" (target: {target})" if target else ""),
            flush=True,
        )
        server = IarServer(server.items, mixture, 1)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--clients", type=int, default=6040)
    for name in ("fed3cr", "fediar", "server"):
        parser.add_argument(f"--{name}", action="store_true")
    given = parser.parse_args()
    if given.server:
        import sklearn.mixture  # noqa: F401  # not part of a step

        server_step(4_000, "3 s")
        server_step(40_000, "30 s")
    if given.fediar:
        one_round("fediar", given.clients, {"warmup": 0}, "30 s")
    if given.fed3cr:
        one_round("fed3cr", given.clients, {}, "120 s, 8 GiB")
    if given.server or given.fediar or given.fed3cr:
        return 0
    failed = 0
    for part in ("server", "fediar", "fed3cr"):
        command = [sys.executable, __file__, f"--{part}", "--clients", str(given.clients)]
        failed += subprocess.run(command, check=False).returncode != 0
    load = "/".join(f"{value:.1f}" for value in os.getloadavg())
    print(f"load of the machine over 1/5/15 minutes: {load} on {os.cpu_count()} cores", flush=True)
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
