"""Seconds and memory of two-table methods: one round on ml-1m, and FedIAR's server step.

    FEDREC_DATA=... python benchmarks/two_views.py [--clients 6040] [--fed3cr] [--fediar] [--server]

Without a choice all three are measured. With fewer clients the time of all is extrapolated (work is linear in
clients); processor seconds stand beside wall-clock seconds, because a busy machine stretches only the latter.
"""

from __future__ import annotations

import argparse
import resource
import time

import numpy as np

from fedrec.core.method import Keys


def one_round(method: str, data: str, clients: int, settings: dict[str, object], number: int = 1) -> None:
    """One round of local work and aggregation, without judging."""
    from fedrec.running import prepare, resolve

    prepared = prepare(
        resolve(method, {"data": data, "protocol": "strict", "keep_selected": False, "settings": settings})
    )
    chosen = np.arange(min(clients, prepared.people.world.n_clients))
    wall, processor = time.perf_counter(), time.process_time()
    prepared.runtime.round(number, chosen, chosen, False)
    wall, processor = time.perf_counter() - wall, time.process_time() - processor
    whole = prepared.people.world.n_clients / len(chosen)
    memory = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20
    print(
        f"{method} on {data}: {len(chosen)} clients in {wall:.1f} s ({processor:.1f} s of processor time); "
        f"all {prepared.people.world.n_clients}: {wall * whole:.0f} s ({processor * whole:.0f}); peak {memory:.1f} GiB",
        flush=True,
    )


def server_step(n_items: int, dim: int = 32) -> None:
    """FedIAR's exploration (Eq. 4-16), cold and warm-started."""
    from fedrec.methods.fediar import FedIar, IarServer

    method = FedIar()
    server = IarServer(np.random.default_rng(0).normal(size=(n_items, dim)).astype(np.float32))
    for label in ("cold", "warm"):
        wall, processor = time.perf_counter(), time.process_time()
        _, mixture = method.exploration(server, Keys(0, 1))
        wall, processor = time.perf_counter() - wall, time.process_time() - processor
        print(
            f"fediar server step, {n_items} items, {label}: {wall:.2f} s ({processor:.2f} s of processor time)",
            flush=True,
        )
        server = IarServer(server.items, mixture, 1)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--clients", type=int, default=6040)
    for name in ("fed3cr", "fediar", "server"):
        parser.add_argument(f"--{name}", action="store_true")
    given = parser.parse_args()
    everything = not (given.fed3cr or given.fediar or given.server)
    if given.server or everything:
        server_step(4_000)
        server_step(40_000)
    if given.fediar or everything:
        one_round("fediar", "ml-1m", given.clients, {"warmup": 0})
    if given.fed3cr or everything:
        one_round("fed3cr", "ml-1m", given.clients, {})


if __name__ == "__main__":
    main()
