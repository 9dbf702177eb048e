"""Seconds and memory of methods with two views: one round on ml-1m, FedIAR's server step, and the engines compared.

    FEDREC_DATA=... python benchmarks/two_views.py [--clients 6040] [--fed3cr] [--fediar] [--server] [--engines]
    python benchmarks/two_views.py --engines [--device cpu --device cuda] [--engine-clients 64]

Without a choice the first three are measured, each in a process of its own, so that a memory peak is its own.
``--engines`` trains the same clients with gradients written out (on the CPU) and with torch's own, on every device
named [cpu, and cuda where there is one]; its ratio is of processor seconds. With fewer clients the time of all is
extrapolated (work is linear in clients). Processor seconds stand beside wall-clock seconds, because a busy machine
stretches the latter most; the last line says how busy it was. Where ml-1m is not at hand, a synthetic world of its
shape is taken. Kernels are compiled and libraries imported by a small round that is not counted.
"""

from __future__ import annotations

import argparse
import os
import resource
import subprocess
import sys
import time
from dataclasses import replace
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "src"))

import numpy as np

from fedrec.core.method import Keys

ML_1M = "scale:users=6040,items=3706,interactions=1000209"
"""A world of ml-1m's shape."""


def one_round(method: str, clients: int, settings: dict[str, object], target: str) -> None:
    """One round of local work and aggregation on ml-1m, without evaluation."""
    from fedrec.errors import BadInput
    from fedrec.experiment.prepare import prepare
    from fedrec.experiment.resolve import resolve

    given = {"protocol": "strict", "keep_selected": False, "settings": settings}
    try:
        data = "ml-1m"
        prepared = prepare(resolve(method, {**given, "data": data}))
    except BadInput:
        data = "a synthetic world of ml-1m's shape"
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
    from fedrec.methods.two_views.fediar import FedIar
    from fedrec.methods.two_views.fediar_state import IarServer

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


def engines(devices: list[str], clients: int, n_items: int = 3706, each: int = 165, dim: int = 32) -> None:
    """One round of local work of Fed3CR and FedRAP, engine by engine, on synthetic clients of ml-1m's shape."""
    import torch

    from fedrec.backbones import find as find_backbone
    from fedrec.core.block import Block
    from fedrec.data.ragged import Ragged, offsets
    from fedrec.learn.samples import draw
    from fedrec.methods.two_views import fed3cr, fedrap
    from fedrec.methods.two_views.generator import start_generator
    from fedrec.methods.two_views.step import Objective
    from fedrec.methods.two_views.train import train_two_views

    rng = np.random.default_rng(0)
    counts = np.clip(rng.lognormal(np.log(each * 0.6), 1.0, clients).astype(np.int64), 4, n_items // 3)
    lists = [np.sort(rng.choice(n_items, count, replace=False)) for count in counts]
    train = Ragged(offsets(counts), np.concatenate(lists).astype(np.int32))
    numbers = np.arange(clients, dtype=np.uint64)
    block = Block(n_items, np.arange(clients), numbers, np.arange(clients + 1), numbers, train, train)
    samples, keys = draw(block, 4, Keys(0, 1).clients(block, "negatives")), Keys(0, 1).clients(block, "batches")
    small = Objective(epochs=10, lr=0.01, lr_items=0.01)
    cases = {
        "fed3cr": (fed3cr.loss, "mf", replace(small, transfer="ace", beta_a=0.5, beta_o=0.5, lr_transfer=0.01)),
        "fedrap": (fedrap.loss, "affine", replace(small, lambda_=0.01, mu=0.01, reduction="mean", lr_items=1.0)),
    }
    shared = (0.01 * rng.normal(size=(n_items, dim))).astype(np.float32)
    users = (0.2 * rng.normal(size=(clients, dim))).astype(np.float32)
    for device in devices:
        for name, (loss, scorer, chosen) in cases.items():
            wall: dict[str, float] = {}
            processor: dict[str, float] = {}
            for engine in ("auto", "torch") if device == "cpu" else ("torch",):
                for counted in (False, True):  # the first compiles and warms up
                    networks = {"bias": np.zeros(clients, np.float32)} if scorer == "affine" else {}
                    networks |= start_generator(1, dim, 3) if chosen.transfer == "ace" else {}
                    now = chosen if counted else replace(chosen, epochs=1)
                    private = np.repeat(shared[None], clients, 0)
                    began, busy = time.perf_counter(), time.process_time()
                    train_two_views(
                        block, samples, users, shared, private, networks, find_backbone(scorer), (now,), loss, keys,
                        engine=engine, device=device,
                    )  # fmt: skip
                    if device != "cpu":
                        torch.cuda.synchronize()
                    wall[engine], processor[engine] = time.perf_counter() - began, time.process_time() - busy
            line = ", ".join(f"{engine} {value:.2f} s ({processor[engine]:.2f})" for engine, value in wall.items())
            times = f"; torch's own take {processor['torch'] / processor['auto']:.1f} times" if "auto" in wall else ""
            print(f"{name} on {device}, {clients} clients of {n_items} items: {line}{times}", flush=True)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--clients", type=int, default=6040)
    parser.add_argument("--engines", action="store_true")
    parser.add_argument("--engine-clients", type=int, default=64)
    parser.add_argument("--device", action="append")
    for name in ("fed3cr", "fediar", "server"):
        parser.add_argument(f"--{name}", action="store_true")
    given = parser.parse_args()
    if given.engines:
        import torch

        there = ["cpu", "cuda"] if torch.cuda.is_available() else ["cpu"]
        engines(given.device or there, given.engine_clients)
    if given.server:
        import sklearn.mixture  # noqa: F401  # not part of a step

        server_step(4_000, "3 s")
        server_step(40_000, "30 s")
    if given.fediar:
        one_round("fediar", given.clients, {"warmup": 0}, "30 s")
    if given.fed3cr:
        one_round("fed3cr", given.clients, {}, "120 s, 8 GiB")
    if given.server or given.fediar or given.fed3cr or given.engines:
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
