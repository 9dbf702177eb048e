"""Seconds, bytes and error of FedCIA's alignment and truncation, and of a whole round with either alignment.

    python benchmarks/fedcia.py
    python benchmarks/fedcia.py --clients 100 --items 1682 --dim 128 --gradient-clients 4

Synthetic data of ML-100K's size by default; prints one line of JSON. Alignment by gradient steps is timed
on a few clients and scaled up. (PYTHONPATH=src does instead of an installation.)
"""

from __future__ import annotations

import argparse
import json
import resource
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "src"))

import numpy as np

from fedrec import keyed
from fedrec.core import wire
from fedrec.core.block import Block, World
from fedrec.core.method import Keys, Reply
from fedrec.data.ragged import Ragged, offsets
from fedrec.maths import alignment
from fedrec.maths.lowrank_similarity import top_factors, truncated
from fedrec.methods.fedcia.fedcia import SimilarityExchange
from fedrec.methods.fedcia.method import FedCia
from fedrec.methods.fedcia.settings import FedCiaSettings


def synthetic(clients: int, users: int, items: int, mean: int) -> tuple[World, Block]:
    """Users with popular and rarer items, dealt to clients."""
    draw = np.random.default_rng(0)
    chance = 1.0 / np.arange(1, items + 1) ** 0.7
    chance /= chance.sum()
    counts = np.clip(draw.lognormal(np.log(mean) - 0.4, 0.9, users).astype(int), 5, items // 2)
    lists = [np.sort(draw.choice(items, n, replace=False, p=chance)) for n in counts]
    train = Ragged(offsets(counts), np.concatenate(lists).astype(np.int32))
    held = np.bincount(np.arange(users) * clients // users, minlength=clients)
    block = Block(items, np.arange(clients), keyed.keys_of(range(clients)), offsets(held),
                  keyed.keys_of(range(users)), train, train)  # fmt: skip
    return World("synthetic", items, users, clients), block


def seconds(work: Callable[[], Any]) -> tuple[float, Any]:
    """Wall-clock seconds of some work, and what it gave."""
    began = time.perf_counter()
    found = work()
    return time.perf_counter() - began, found


def one_round(method: FedCia, block: Block, server: Any, private: Any, number: int) -> Any:
    """Local work of everybody in blocks of ten clients, folded as it comes."""
    keys = Keys(0, number)

    def replies() -> Any:
        from fedrec.core.messages import gather, scatter

        for first in range(0, block.n_clients, 10):
            positions = np.arange(first, min(first + 10, block.n_clients))
            part = block.take(positions)
            download = method.download(server, part.clients)
            update = method.local_update(gather(private, block, positions), download, part, keys)
            scatter(private, block, positions, update.private)
            yield Reply(part.clients, update.upload)

    return method.aggregate(server, replies(), keys)


def main() -> None:
    """Parse, run, print."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--clients", type=int, default=100)
    parser.add_argument("--users", type=int, default=943)
    parser.add_argument("--items", type=int, default=1682)
    parser.add_argument("--interactions", type=int, default=76, help="mean training interactions of a user")
    parser.add_argument("--dim", type=int, default=128)
    parser.add_argument("--gradient-clients", type=int, default=3, help="clients on which gradient steps are timed")
    chosen = parser.parse_args()
    world, block = synthetic(chosen.clients, chosen.users, chosen.items, chosen.interactions)

    method = FedCia(FedCiaSettings(backbone="mf", dim=chosen.dim))
    server, private = method.start_server(world, Keys(0, 0)), method.start_clients(world, block, Keys(0, 0))
    first, server = seconds(lambda: one_round(method, block, server, private, 1))  # compiles the kernel
    worked = time.process_time()  # of all threads: says what the round needs on a machine that is shared
    second, server = seconds(lambda: one_round(method, block, server, private, 2))
    worked = time.process_time() - worked

    tables, factors = private.tables, server.left
    assert tables is not None
    similarity = np.zeros((chosen.items, chosen.items))
    for table in tables:
        similarity += (table @ table.T) / np.float32(len(tables))
    eigen, _ = seconds(lambda: top_factors(similarity, chosen.dim))
    closed, near = seconds(lambda: [alignment.closed_form(factors, table) for table in tables[:10]])
    asked = tables[: chosen.gradient_clients]
    whole = similarity.astype(np.float32)
    stepped, far = seconds(lambda: [alignment.gradient_steps(t, whole, None, 100, 0.1) for t in asked])
    per_closed, per_gradient = closed / 10, stepped / len(asked)

    def distance(table: Any) -> float:
        return float(np.linalg.norm(table @ table.T - whole) / np.linalg.norm(whole))

    full = SimilarityExchange(FedCiaSettings(backbone="mf", dim=chosen.dim, form="full"), "cpu")
    thin = SimilarityExchange(FedCiaSettings(backbone="mf", dim=chosen.dim, form="truncated"), "cpu")
    rank = thin.rank(chosen.items)
    lost = [truncated(table, None, rank).lost for table in tables[:10]]
    sizes = {name: wire.payload(m.upload(tables[:1])) for name, m in (("full", full), ("truncated", thin))}
    print(
        json.dumps(
            {
                **vars(chosen),
                "round seconds": {"first": round(first, 2), "next": round(second, 2), "cpu of next": round(worked, 2)},
                "align seconds a client": {"closed": round(per_closed, 4), "gradient": round(per_gradient, 4)},
                "eigenpairs seconds a round": round(eigen, 2),
                "speed-up of the closed form": round(per_gradient / (per_closed + eigen / chosen.clients), 1),
                "distance to the mean similarity": {
                    "before": round(distance(tables[0]), 4),
                    "closed": round(distance(near[0]), 4),
                    "gradient": round(distance(far[0]), 4),
                },
                "truncated": {"rank": rank, "share of norm lost": round(float(np.mean(lost)), 4), "bytes": sizes},
                "peak_mb": round(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024),
            }
        )
    )


if __name__ == "__main__":
    main()
