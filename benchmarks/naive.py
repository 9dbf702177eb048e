"""The loop that public code trains with: one module, one data loader and one optimiser per client.

The same samples and the same order of mini-batches as :func:`fedrec.learn.train.train_block`, so that
results can be compared as well as seconds.

    python benchmarks/naive.py [--clients 60] [--users 943] [--items 1682] [--interactions 100000]
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
import torch
from torch import nn
from torch.utils.data import DataLoader, Dataset, Sampler

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


class ClientModel(nn.Module):
    """One user's vector and a whole item table."""

    def __init__(self, user: torch.Tensor, table: torch.Tensor) -> None:
        super().__init__()
        self.user = nn.Embedding(1, len(user), _weight=user[None].clone())
        self.items = nn.Embedding(len(table), table.shape[1], _weight=table.clone())

    def forward(self, items: torch.Tensor) -> torch.Tensor:
        user = self.user(torch.zeros(len(items), dtype=torch.long))
        return torch.sigmoid((user * self.items(items)).sum(-1))


class ClientSamples(Dataset[tuple[torch.Tensor, torch.Tensor]]):
    """(item, label) pairs of one client."""

    def __init__(self, items: np.ndarray, labels: np.ndarray) -> None:
        self.items = torch.from_numpy(items.astype(np.int64))
        self.labels = torch.from_numpy(labels.astype(np.float32))

    def __len__(self) -> int:
        return len(self.items)

    def __getitem__(self, index: int) -> tuple[torch.Tensor, torch.Tensor]:
        return self.items[index], self.labels[index]


class KeyedOrder(Sampler[int]):
    """The product's order of mini-batches, epoch by epoch."""

    def __init__(self, n: int, key: int) -> None:
        self.n, self.key, self.epoch = n, key, 0

    def __len__(self) -> int:
        return self.n

    def __iter__(self) -> Iterator[int]:
        order = shuffle.order(self.n, shuffle.epoch_key(self.key, self.epoch))
        self.epoch += 1
        return iter(order.tolist())


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
    shared = torch.from_numpy(table)
    for c in chosen:
        own = slice(int(samples.start[c]), int(samples.start[c + 1]))
        ids = samples.rows_ids[samples.rows_start[c] : samples.rows_start[c + 1]]
        model = ClientModel(torch.from_numpy(users[c]), shared)
        data = ClientSamples(ids[samples.row[own]], samples.label[own])
        loader = DataLoader(data, settings.batch_size, sampler=KeyedOrder(len(data), int(keys[c])))
        optimiser = torch.optim.Adam(model.parameters(), lr=settings.lr)
        loss_of = nn.BCELoss()
        for _ in range(settings.epochs if len(data) else 0):
            for items, labels in loader:
                optimiser.zero_grad()
                loss = loss_of(model(items), labels)
                loss.backward()
                optimiser.step()
        new_users.append(model.user.weight.detach()[0].numpy())
        tables.append(model.items.weight.detach().numpy())
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
