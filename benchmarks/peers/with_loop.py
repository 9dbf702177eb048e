"""The naive loop as a worker: client after client, one torch thread (its best), a running mean of tables."""

from __future__ import annotations

import numpy as np
import torch

from loop import train_client
from talk import Array, Round, Work, serve


def prepare(work: Work) -> Round:
    torch.set_num_threads(1)

    def one_round() -> Array:
        total = np.zeros(work.table.shape)
        for c in range(work.clients):
            own = work.own(c)
            _, table = train_client(
                work.users[c], work.table, work.item[own], work.label[own], work.order[:, own],
                work.batch, work.lr, work.optimizer,
            )  # fmt: skip
            total += work.sizes[c] * (table - work.table)
        return np.asarray(work.table + total / work.sizes.sum(), np.float32)

    return one_round


if __name__ == "__main__":
    serve(prepare)
