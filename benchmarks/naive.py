"""The loop that public code trains with (``peers/loop.py``) beside our engines, on one block of clients.

The same samples and the same order of mini-batches as :func:`fedrec.learn.train.train_block`, so that
results can be compared as well as seconds.

    python benchmarks/naive.py [--clients 60] [--users 943] [--items 1682] [--interactions 100000]
"""

from __future__ import annotations

import argparse
import sys
import time
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import torch

from fedrec import keyed
from fedrec.backbones.mf import MatrixFactorisation
from fedrec.core.block import Block
from fedrec.core.messages import Float32
from fedrec.core.settings import TrainingSettings
from fedrec.data.ragged import Int64, Ragged, offsets
from fedrec.keyed import U64
from fedrec.learn import shuffle
from fedrec.learn.sample_arrays import Samples
from fedrec.learn.samples import draw
from fedrec.learn.train import train_block

sys.path.insert(0, str(Path(__file__).resolve().parent / "peers"))

from loop import train_client


def orders_of(n: int, key: int, epochs: int) -> Int64:
    """The product's order of a client's samples ``[epochs, n]``."""
    if not n:
        return np.zeros((epochs, 0), np.int64)
    return np.stack([shuffle.order(n, shuffle.epoch_key(key, epoch)) for epoch in range(epochs)])


def train_naively(
    block: Block,
    samples: Samples,
    users: Float32,
    table: Float32,
    settings: TrainingSettings,
    keys: U64,
    clients: Int64 | None = None,
) -> tuple[Float32, Float32]:
    """New users ``[clients, d]`` and tables ``[clients, m, d]`` of the chosen clients (one user each)."""
    chosen = np.arange(block.n_clients) if clients is None else clients
    new_users, tables = [], []
    for c in chosen:
        own = slice(int(samples.start[c]), int(samples.start[c + 1]))
        ids = samples.rows_ids[samples.rows_start[c] : samples.rows_start[c + 1]]
        order = orders_of(own.stop - own.start, int(keys[c]), settings.epochs)
        user, items = train_client(
            users[c], table, ids[samples.row[own]], samples.label[own], order,
            settings.batch_size, settings.lr, settings.optimizer,
        )  # fmt: skip
        new_users.append(user)
        tables.append(items)
    return np.stack(new_users), np.stack(tables)


@dataclass(frozen=True)
class Comparison:
    """Seconds for all clients, and how far results are apart."""

    naive: float
    """Extrapolated from the clients measured, by their share of samples."""
    kernel: float
    torch: float
    difference: float
    """Largest difference between naive and kernel in any user or item value."""
    typical: float
    """Mean absolute difference."""

    @property
    def speedup(self) -> float:
        return self.naive / self.kernel


def compare(block: Block, settings: TrainingSettings, clients: int = 60, seed: int = 0, repeats: int = 3) -> Comparison:
    """Time the naive loop, the kernel and the batched engine on one block of one-user clients.

    Drawing samples is in the product's seconds and not in the naive loop's.
    """
    rng = np.random.default_rng(seed)
    users = (rng.standard_normal((block.n_users, settings.dim)) * 0.1).astype(np.float32)
    table = (rng.standard_normal((block.n_items, settings.dim)) * 0.1).astype(np.float32)
    keys = keyed.streams(keyed.stream(seed, "bench"), block.client_keys)
    backbone = MatrixFactorisation()
    seconds = {}
    for engine in ("kernel", "torch"):
        chosen = settings.model_copy(update={"engine": engine})
        times = []
        for _ in range(repeats):
            began = time.perf_counter()
            samples = draw(block, settings.negatives, keys, engine=engine)
            trained = train_block(block, samples, users, table, chosen, keys, backbone)
            times.append(time.perf_counter() - began)
            if engine == "kernel":
                kept = trained
        seconds[engine] = min(times)

    # every n-th client by size, so that the measured ones are like all of them
    by_size = np.argsort(block.sizes, kind="stable")
    some = by_size[:: max(1, block.n_clients // clients)]
    threads = torch.get_num_threads()
    torch.set_num_threads(1)  # the naive loop at its best: more threads only slow its small steps down
    began = time.perf_counter()
    naive_users, naive_tables = train_naively(block, samples, users, table, settings, keys, some)
    took = time.perf_counter() - began
    torch.set_num_threads(threads)
    share = block.sizes[some].sum() / max(1, block.sizes.sum())
    mine = kept.rows.take(some).dense() + table
    apart_users, apart_items = np.abs(naive_users - kept.users[some]), np.abs(naive_tables - mine)
    return Comparison(
        naive=took / share,
        kernel=seconds["kernel"],
        torch=seconds["torch"],
        difference=float(max(apart_users.max(), apart_items.max())),
        typical=float((apart_users.mean() + apart_items.mean()) / 2),
    )


def block_like(users: int, items: int, interactions: int, seed: int = 0) -> Block:
    """A synthetic block with the skew of real data: few users and items have most interactions."""
    rng = np.random.default_rng(seed)
    of_user = rng.dirichlet(rng.gamma(1.0, size=users) + 0.1)
    drawn_users = rng.choice(users, interactions, p=of_user)
    drawn_items = (items * rng.random(interactions) ** 2).astype(np.int64)
    pairs = np.unique(drawn_users * items + drawn_items)
    counts = np.bincount(pairs // items, minlength=users)
    lists = Ragged(offsets(counts), (pairs % items).astype(np.int32))
    keys = keyed.keys_of(range(users))
    return Block(items, np.arange(users), keys, np.arange(users + 1), keys, lists, lists)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--clients", type=int, default=60, help="clients that the naive loop trains")
    parser.add_argument("--users", type=int, default=943)
    parser.add_argument("--items", type=int, default=1682)
    parser.add_argument("--interactions", type=int, default=100_000)
    given = parser.parse_args()
    block = block_like(given.users, given.items, given.interactions)
    found = compare(block, TrainingSettings(), given.clients)
    print(f"naive loop    {found.naive:8.2f} s a round (extrapolated from {given.clients} clients)")
    print(f"fused kernel  {found.kernel:8.3f} s, {found.speedup:.0f} times faster")
    print(f"batched torch {found.torch:8.3f} s, {found.torch / found.kernel:.1f} times the kernel")
    print(f"largest difference of any value {found.difference:.1e}, mean {found.typical:.1e}")


if __name__ == "__main__":
    main()
