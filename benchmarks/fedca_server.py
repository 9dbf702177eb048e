"""Seconds and memory of FedCA's server: distances, angles, weights and mixture of one round.

    python benchmarks/fedca_server.py --clients 943 --items 1682
    python benchmarks/fedca_server.py --clients 6040 --items 3706 --device cuda
    python benchmarks/fedca_server.py --clients 100000 --items 19738 --interactions 7 --neighbours 32

Needs numpy and torch only, and numba with --neighbours. Prints one line of JSON; `cpu` is processor seconds,
for machines that are shared.
"""

from __future__ import annotations

import argparse
import json
import resource
import sys
import time
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "src"))

import numpy as np
import torch

from fedrec.maths import composite


def world(clients: int, items: int, dim: int, mean: int, k: int, seed: int) -> tuple[Any, Any, Any]:
    """Tables around a common one, and random unit columns for lists of log-normal length."""
    draw = np.random.default_rng(seed)
    base = draw.uniform(-0.5, 0.5, (items, dim)).astype(np.float32)
    tables = np.empty((clients, items, dim), np.float32)
    for client in range(clients):
        tables[client] = base + draw.standard_normal((items, dim), np.float32) * np.float32(0.05)
    counts = np.clip(draw.lognormal(np.log(mean) - 0.4, 0.9, clients).astype(int), 8, items)
    start = np.concatenate([[0], np.cumsum(counts)])
    vectors = draw.standard_normal((start[-1], k)).astype(np.float32)
    vectors /= np.sqrt(np.repeat(np.add.reduceat(vectors**2, start[:-1]), counts, axis=0))
    return tables, start, vectors


def exact(arguments: argparse.Namespace) -> dict[str, Any]:
    """One round with all pairs."""
    tables, start, vectors = world(
        arguments.clients, arguments.items, arguments.dim, arguments.interactions, arguments.k, 0
    )
    device, seconds = arguments.device, {}

    def timed(name: str, work: Any) -> Any:
        began = time.perf_counter()
        found = work()
        if device != "cpu":
            torch.cuda.synchronize()
        seconds[name] = round(time.perf_counter() - began, 4)
        return found

    if device != "cpu":  # the first call on a device starts its libraries
        small = torch.rand(64, 64, device=device)
        (small @ small).sort(dim=1)
        torch.linalg.eigh(small @ small.T)
    placed = timed("to device", lambda: composite.on_device(tables, device))
    squares = timed("similarity", lambda: composite.similarity(composite.squared_distances(placed, None, device)))
    angles = timed("complementarity", lambda: composite.complementarity(composite.mean_angles(vectors, start, device)))
    weights = timed(
        "weights",
        lambda: composite.composite_weights(
            squares, angles, np.diff(start), arguments.alpha, arguments.beta, device=device
        ),
    )
    dense = float((weights > 0).float().mean())
    timed("mixture", lambda: composite.mix(placed, weights, out=tables, device=device))
    return {"positive weights": round(dense, 4), "seconds": seconds}


def approximate(arguments: argparse.Namespace) -> dict[str, Any]:
    """One round of fedca-approx: tables of few rows, few candidates each."""
    from fedrec.maths import neighbours

    draw = np.random.default_rng(0)
    n, rows = arguments.clients, arguments.rows
    seconds = {}
    counts = np.clip(draw.lognormal(np.log(arguments.interactions) - 0.4, 0.9, n).astype(int), 3, arguments.items)
    start = np.concatenate([[0], np.cumsum(counts)])
    vectors = draw.standard_normal((start[-1], arguments.k)).astype(np.float32)
    vectors /= np.sqrt(np.repeat(np.add.reduceat(vectors**2, start[:-1]), counts, axis=0))
    tables = neighbours.FewRows.none(n, rows, arguments.dim, arguments.items)
    popular = (np.arange(1, arguments.items + 1) ** -0.7).cumsum()
    for client in range(n):
        drawn = np.unique(np.searchsorted(popular, draw.random(rows) * popular[-1]))
        tables.ids[client, : len(drawn)] = drawn
        tables.values[client, : len(drawn)] = draw.standard_normal((len(drawn), arguments.dim), np.float32) * 0.05
    proxy = counts / counts.sum()

    def timed(name: str, work: Any) -> Any:
        began = time.perf_counter()
        found = work()
        seconds[name] = round(time.perf_counter() - began, 3)
        return found

    alpha, beta = arguments.alpha, arguments.beta / 2
    sketches = timed("sketch", lambda: neighbours.sketch(tables, 1))
    others = timed(
        "search",
        lambda: neighbours.candidates(
            sketches, vectors, start, proxy, alpha, beta, arguments.neighbours, device=arguments.device
        ),
    )
    weights = timed("weights", lambda: neighbours.sparse_weights(tables, vectors, start, others, proxy, alpha, beta))
    timed("mixture", lambda: neighbours.mix_few(tables, others, weights, rows))
    return {"seconds": seconds}


def main() -> None:
    """Parse, run, print."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--clients", type=int, default=943)
    parser.add_argument("--items", type=int, default=1682)
    parser.add_argument("--dim", type=int, default=16)
    parser.add_argument("--interactions", type=int, default=106, help="mean interactions of a client")
    parser.add_argument("--k", type=int, default=4)
    parser.add_argument("--alpha", type=float, default=0.5)
    parser.add_argument("--beta", type=float, default=0.4)
    parser.add_argument("--device", default="cpu", choices=["cpu", "cuda"])
    parser.add_argument("--neighbours", type=int, default=0, help="candidates of each client; 0 is exact")
    parser.add_argument("--rows", type=int, default=256, help="rows that a table keeps with --neighbours")
    arguments = parser.parse_args()
    if arguments.device == "cuda" and not torch.cuda.is_available():
        print("skipped: no CUDA device here")
        return
    began = time.perf_counter()
    found = approximate(arguments) if arguments.neighbours else exact(arguments)
    total = round(sum(found["seconds"].values()), 3)
    peak = round(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024)
    whole, cpu = round(time.perf_counter() - began, 1), round(time.process_time(), 1)
    print(json.dumps({**vars(arguments), **found, "total": total, "peak_mb": peak, "with_setup": whole, "cpu": cpu}))


if __name__ == "__main__":
    main()
