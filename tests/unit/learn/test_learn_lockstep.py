"""Clients in step: against a plain loop over clients, epochs and mini-batches."""

from __future__ import annotations

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from fedrec.learn.lockstep import Lockstep, chunks, largest_first


def test_clients_with_samples_come_largest_first_and_equals_in_their_order() -> None:
    np.testing.assert_array_equal(largest_first(np.array([2, 0, 5, 2, 0, 9])), [5, 2, 0, 3])


def test_chunks_hold_as_many_as_fit_and_at_least_one() -> None:
    clients = np.arange(7)
    fitting = [3, 0, 0, 0, 2, 0, 5]
    found = [chunk.tolist() for chunk in chunks(clients, lambda at: fitting[at])]
    assert found == [[0, 1, 2], [3], [4, 5], [6]]


@settings(max_examples=40)
@given(
    counts=st.lists(st.integers(1, 20), min_size=1, max_size=6),
    batch_size=st.integers(1, 8),
    epochs=st.integers(1, 3),
)
def test_every_client_sees_its_samples_in_order_epoch_after_epoch(
    counts: list[int], batch_size: int, epochs: int
) -> None:
    falling = np.array(sorted(counts, reverse=True))
    total = int(falling.sum()) * epochs
    seen: list[list[list[int]]] = [[] for _ in falling]
    last = np.zeros(len(falling), np.int64)
    for number, host in enumerate(Lockstep(falling, batch_size, epochs)):
        assert host.number == number
        inside, index = host.on("cpu").grid(total)
        assert inside.shape == index.shape == (host.active, host.width)
        assert host.even == bool(inside.all())
        assert (index[~inside] == total).all()
        for client in range(host.active):
            seen[client].append(index[client][inside[client]].tolist())
            last[client] += int(host.length[client]) * int(host.epoch[client] == epochs - 1)
    at = 0
    for client, count in enumerate(falling):
        wanted = []
        for _ in range(epochs):
            wanted += [list(range(at + b, at + min(b + batch_size, int(count)))) for b in range(0, count, batch_size)]
            at += int(count)
        assert seen[client] == wanted
    np.testing.assert_array_equal(last, falling)
