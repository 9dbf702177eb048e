"""Local training of ML-1M's clients on a CUDA device, batched torch: seconds a round.

    python benchmarks/cuda.py [--interactions FILE.npz]

Needs torch and numpy only. The file holds ``start`` and ``items`` (a user's training items one after another);
without it a synthetic world of the same shape is used.
"""

from __future__ import annotations

import argparse
import sys
import time
from dataclasses import dataclass
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "src"))

import numpy as np
import torch

from fedrec import keyed
from fedrec.backbones.mf import MatrixFactorisation
from fedrec.backbones.ncf import NeuralCollaborativeFiltering
from fedrec.core.block import Block
from fedrec.data.ragged import Ragged, offsets
from fedrec.learn.samples import draw
from fedrec.learn.train import train_block


@dataclass(frozen=True)
class Plan:
    """What training reads of a method's settings; FedCA section 6.1."""

    epochs: int = 10
    batch_size: int = 256
    lr: float = 0.01
    optimizer: str = "adam"
    weight_decay: float = 0.0
    objective: str = "bce"
    engine: str = "torch"


def ml_1m_block(path: str | None = None) -> Block:
    """ML-1M's training lists, or a synthetic world of the same shape."""
    if path:
        stored = np.load(path)
        lists = Ragged(stored["start"].astype(np.int64), stored["items"].astype(np.int32))
        n_items = int(stored["n_items"])
    else:
        rng, users, n_items = np.random.default_rng(0), 6040, 3706
        counts = np.clip(rng.lognormal(4.6, 0.95, users).astype(int), 18, 2300)
        popularity = 1.0 / np.arange(10, n_items + 10)
        chosen = [rng.choice(n_items, c, replace=False, p=popularity / popularity.sum()) for c in counts]
        lists = Ragged(offsets(counts), np.concatenate([np.sort(c) for c in chosen]).astype(np.int32))
    users = len(lists)
    ordered = Ragged(lists.start, np.concatenate([np.sort(lists[u]) for u in range(users)]))
    keys = keyed.keys_of(range(users))
    return Block(n_items, np.arange(users), keys, np.arange(users + 1), keys, ordered, ordered)


def rows(path: str | None = None, device: str = "cuda") -> list[str]:
    """Seconds a round for both backbones."""
    block = ml_1m_block(path)
    rng = np.random.default_rng(0)
    users = rng.uniform(0, 0.3, (block.n_users, 16)).astype(np.float32)
    table = rng.uniform(0, 0.3, (block.n_items, 16)).astype(np.float32)
    keys = keyed.streams(1, block.client_keys)
    source = "ml-1m" if path else "synthetic world of ml-1m's shape"
    name = torch.cuda.get_device_name(0) if device == "cuda" else "cpu"
    found = [f"{source}, {block.n_clients} clients, {len(block.train.values)} interactions, d=16, 10 epochs, on {name}"]
    for backbone in (MatrixFactorisation(), NeuralCollaborativeFiltering()):
        one = np.array([1], np.uint64)
        networks = {k: v[0] for k, v in backbone.start(one, 16).items()}
        times = []
        for _ in range(4):
            began = time.perf_counter()
            samples = draw(block, 4, keys, engine="torch", device=device)
            train_block(block, samples, users, table, Plan(), keys, backbone, networks, device)
            if device == "cuda":
                torch.cuda.synchronize()
            times.append(time.perf_counter() - began)
        peak = torch.cuda.max_memory_allocated() / 2**30 if device == "cuda" else float("nan")
        found.append(
            f"{backbone.name:<4} {min(times):8.3f} s a round (first {times[0]:.2f}), peak {peak:.1f} GiB on the device"
        )
    return found


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--interactions", help="npz with start, items, n_items")
    parser.add_argument("--device", default="cuda")
    given = parser.parse_args()
    print("\n".join(rows(given.interactions, given.device)))
