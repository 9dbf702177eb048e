"""How a peer's worker and ``benchmarks/peers.py`` talk; numpy alone, since every peer has its own environment.

A worker is started with the path of the work (``.npz``). It then reads paths from its standard input, one a line: for
each it makes one round from the same start, writes the item table there (``.npy``) and answers with a line of JSON
(``{"clock": 1.5, "cpu": 1.4}``). What libraries print goes to the standard error.
"""

from __future__ import annotations

import json
import os
import sys
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cache, partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

Array = NDArray[Any]


@dataclass(frozen=True)
class Work:
    """One round of federated matrix factorisation: who trains on what, in which order, from which start."""

    table: Array  # float32 [n_items, d]
    users: Array  # float32 [clients, d]
    start: Array  # int64 [clients + 1] samples of client c: start[c] .. start[c + 1]
    item: Array  # int32 [samples]
    label: Array  # float32 [samples]
    order: Array  # int32 [epochs, samples] position among the client's own samples
    batch: int
    lr: float
    optimizer: str

    @property
    def clients(self) -> int:
        return len(self.users)

    @property
    def sizes(self) -> Array:
        """Samples of each client: its weight in the mean."""
        return np.diff(self.start)

    def own(self, client: int) -> slice:
        return slice(int(self.start[client]), int(self.start[client + 1]))

    def epochs(self, client: int) -> Iterator[tuple[Array, Array]]:
        """Items and labels of a client in the order of each epoch."""
        own = self.own(client)
        item, label = self.item[own], self.label[own]
        for order in self.order[:, own]:
            yield item[order], label[order]

    def batches(self, client: int) -> Iterator[tuple[Array, Array]]:
        """Items and labels of a client, mini-batch after mini-batch, over all epochs."""
        for item, label in self.epochs(client):
            for first in range(0, len(item), self.batch):
                yield item[first : first + self.batch], label[first : first + self.batch]

    def write(self, path: str) -> None:
        np.savez(path, **self.__dict__)


@cache
def read(path: str) -> Work:
    with np.load(path) as found:
        arrays = {name: found[name] for name in found.files}
    return Work(**{name: value if value.ndim else value.item() for name, value in arrays.items()})


Round = Callable[[], Array]
"""One round from the start; gives the new item table."""


def requests() -> Iterator[Callable[[Round], None]]:
    """What is asked for, one after the other: call each with the round to make."""
    out = os.fdopen(os.dup(1), "w", encoding="utf-8")
    os.dup2(2, 1)  # libraries may print; the answers are ours alone
    print(json.dumps({"ready": True}), file=out, flush=True)

    def answer(path: str, round_: Round) -> None:
        began, used = time.perf_counter(), time.process_time()
        table = round_()
        seconds = {"clock": time.perf_counter() - began, "cpu": time.process_time() - used}
        np.save(path, table)
        print(json.dumps(seconds), file=out, flush=True)

    for line in sys.stdin:
        yield partial(answer, line.strip())


def serve(prepare: Callable[[Work], Round]) -> None:
    """Be a worker: prepare once, then a round for each request."""
    round_ = prepare(read(sys.argv[1]))
    for request in requests():
        request(round_)
