"""How near the heaviest server steps and FedDAE's private layers are to what this machine does at best, on one thread.

    FEDREC_THREADS=1 OMP_NUM_THREADS=1 python benchmarks/limits.py [--clients 1413] [--items 6777]

Each line is the best of a few tries in processor seconds, ours beside the plain library call or a plain pass over the
same memory. The defaults are the clients and items of Douban-Book, for users with ten or more interactions.
"""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "src"))

import numpy as np
import torch

from fedrec.maths.composite import mix
from fedrec.maths.gram import gram
from fedrec.methods.vae.own_encoder import OwnLayers, equal_parts

DIM, USERS, ROWS, WIDTH, EPOCHS = 16, 64, 769, 512, 10
"""Of a table; of a private layer of FedDAE, and of its training."""


def best(work: Callable[[], Any], tries: int = 3) -> float:
    """Processor seconds of the fastest of some calls; the one before them warms up."""
    seconds = []
    for _ in range(tries + 1):
        began = time.process_time()
        work()
        seconds.append(time.process_time() - began)
    return min(seconds[1:])


def rate(name: str, flops: float, work: Callable[[], Any]) -> None:
    print(f"{name:<58} {flops / best(work) / 1e9:8.0f} GFLOP/s", flush=True)


def products(clients: int, items: int) -> None:
    """Mixtures and Gram matrices of all clients' tables, beside products that stay in cache."""
    draw = np.random.default_rng(0)
    for kind in (torch.float32, torch.bfloat16):
        square = torch.rand(1024, 1024).to(kind)
        rate(f"a product of 1024 x 1024, {str(kind).partition('.')[2]}", 2 * 1024**3, partial(torch.mm, square, square))
    tables = draw.standard_normal((clients, items, DIM), np.float32)
    weights = torch.from_numpy(draw.random((clients, clients), np.float32))
    rate(
        "mixture of whole tables (pfedgraph, gpfedrec)", 2.0 * clients**2 * items * DIM,
        lambda: mix(tables, weights, out=tables),
    )  # fmt: skip
    rate("their Gram matrix, one triangle (fedca too)", 1.0 * clients**2 * items * DIM, lambda: gram(tables))


def layers() -> None:
    """A private layer of some users through one local training, per number and epoch."""
    numbers = USERS * ROWS * WIDTH
    weights = torch.zeros(USERS * ROWS, WIDTH).normal_(generator=torch.Generator().manual_seed(0))
    flat = weights.view(-1)

    def per_number(name: str, work: Callable[[], Any], epochs: int = 1) -> None:
        print(f"{name:<58} {best(work) / numbers / epochs * 1e9:8.2f} ns a number", flush=True)

    def trained(forward: bool, backward: bool) -> None:
        own = OwnLayers(equal_parts(USERS, ROWS), weights, EPOCHS, 1e-9)
        own.inputs.uniform_(-1, 1)
        for epoch in range(EPOCHS):
            if forward:
                own.forward(own.inputs[:, epoch].clone(), epoch)
            if backward:
                own.backward(torch.full((USERS, WIDTH), 0.1), epoch)

    per_number("reading a private layer's memory", flat.sum)
    per_number("reading and writing it", lambda: flat.mul_(1.0))
    per_number("forward through it (feddae)", lambda: trained(True, False), EPOCHS)
    per_number("backward through it and Adam's step", lambda: trained(False, True), EPOCHS)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--clients", type=int, default=1413)
    parser.add_argument("--items", type=int, default=6777)
    given = parser.parse_args()
    torch.set_num_threads(1)
    products(given.clients, given.items)
    layers()


if __name__ == "__main__":
    main()
