"""How near the heaviest server steps and FedDAE's private layers are to what this machine does at best, on one thread.

    FEDREC_THREADS=1 OMP_NUM_THREADS=1 OPENBLAS_NUM_THREADS=1 python benchmarks/limits.py

Each line is the best of a few tries in processor seconds, ours beside the plain library call or a plain pass over the
same memory; the shapes are those of Douban-Book, for users with ten or more interactions. The last lines say what the
five heaviest methods of the leaderboard would need on its three data sets if their products and their passes over
private layers ran at the best of these rates, and all else took no time.
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
BOARD = {"ml-100k": (943, 1682, 98_114), "filmtrust": (1002, 2042, 31_365), "douban-book": (1413, 6777, 90_339)}
"""Users, items, and interactions to train on."""
ROUNDS = {
    "fedca": (30, 30, 30),
    "pfedgraph": (30, 27, 30),
    "gpfedrec": (30, 27, 30),
    "fedvae": (30, 30, 30),
    "feddae": (30, 15, 30),
}
"""Of the leaderboard's runs, seed 0."""
MIXED = {"fedca": 0.06, "pfedgraph": 1.0, "gpfedrec": 1.0}
"""Share of the pairs of clients that a mixture has to multiply; a Gram matrix has half of them."""
NETWORK = ((768, 512), (512, 512), (256, 512), (512, 768))
"""Layers of FedVAE and FedDAE behind the first; the last one is 768 x items."""


def best(work: Callable[[], Any], tries: int = 3) -> float:
    """Processor seconds of the fastest of some calls; the one before them warms up."""
    seconds = []
    for _ in range(tries + 1):
        began = time.process_time()
        work()
        seconds.append(time.process_time() - began)
    return min(seconds[1:])


def rate(name: str, flops: float, work: Callable[[], Any]) -> float:
    """Operations a second, which are printed too."""
    found = flops / best(work)
    print(f"{name:<58} {found / 1e9:8.0f} GFLOP/s", flush=True)
    return found


def products(clients: int, items: int) -> float:
    """Mixtures and Gram matrices of all clients' tables, beside products that stay in cache; the best rate of all."""
    draw, found = np.random.default_rng(0), []
    for kind in (torch.float32, torch.bfloat16):
        square = torch.rand(1024, 1024).to(kind)
        name = f"a product of 1024 x 1024, {str(kind).partition('.')[2]}"
        found.append(rate(name, 2 * 1024**3, partial(torch.mm, square, square)))
    found.pop()  # numbers of 16 bits have other figures
    tables = draw.standard_normal((clients, items, DIM), np.float32)
    weights = torch.from_numpy(draw.random((clients, clients), np.float32))
    pairs = 1.0 * clients**2 * items * DIM
    found.append(
        rate("mixture of whole tables (pfedgraph, gpfedrec)", 2 * pairs, lambda: mix(tables, weights, out=tables))
    )
    found.append(rate("their Gram matrix, one triangle (fedca too)", pairs, lambda: gram(tables)))
    return max(found)


def layers() -> float:
    """A private layer of some users through one local training; the least seconds a number and epoch, both ways."""
    numbers = USERS * ROWS * WIDTH
    weights = torch.zeros(USERS * ROWS, WIDTH).normal_(generator=torch.Generator().manual_seed(0))
    flat = weights.view(-1)

    def per_number(name: str, work: Callable[[], Any], epochs: int = 1) -> float:
        seconds = best(work) / numbers / epochs
        print(f"{name:<58} {seconds * 1e9:8.2f} ns a number", flush=True)
        return seconds

    def trained(forward: bool, backward: bool) -> None:
        own = OwnLayers(equal_parts(USERS, ROWS), weights, EPOCHS, 1e-9)
        own.inputs.uniform_(-1, 1)
        for epoch in range(EPOCHS):
            if forward:
                own.forward(own.inputs[:, epoch].clone(), epoch)
            if backward:
                own.backward(torch.full((USERS, WIDTH), 0.1), epoch)

    least = per_number("reading a private layer's memory", flat.sum)
    least += per_number("reading and writing it", lambda: flat.mul_(1.0))
    per_number("forward through it (feddae)", lambda: trained(True, False), EPOCHS)
    per_number("backward through it and Adam's step", lambda: trained(False, True), EPOCHS)
    return least


def least_hours(method: str, flops_a_second: float, seconds_a_number: float) -> float:
    """Core hours of a method on the board for its products and private layers alone."""
    total = 0.0
    for (users, items, interactions), rounds in zip(BOARD.values(), ROUNDS[method], strict=True):
        if method in MIXED:
            seconds = (1 + 2 * MIXED[method]) * users**2 * items * DIM / flops_a_second
        else:
            weights = sum(a * b for a, b in (*NETWORK, (768, items)))
            # forward, backward, and the sum of all users' gradients
            seconds = 3 * 2 * users * EPOCHS * weights / flops_a_second
        if method == "feddae":
            own = users * (769 * 512 + 513 * 512) + interactions * 768
            seconds += EPOCHS * own * seconds_a_number
        total += rounds * seconds / 3600
    return total


def main() -> None:
    argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter).parse_args()
    torch.set_num_threads(1)
    users, items, _ = BOARD["douban-book"]
    fastest, least = products(users, items), layers()
    hours = {method: least_hours(method, fastest, least) for method in ROUNDS}
    print("core hours at these rates: " + ", ".join(f"{method} {value:.3f}" for method, value in hours.items()))
    print(f"all five: {sum(hours.values()):.2f}")


if __name__ == "__main__":
    main()
