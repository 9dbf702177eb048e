"""Who is whose neighbour: members on a circle in a random order, each with the next ones on either side.

This is the random Harary graph of Bell, Bonawitz, Gascon, Lepoint and Raykova 2020, "Secure Single-Server Aggregation
with (Poly)Logarithmic Overhead". With k >= n - 1 everybody is everybody's neighbour. The order is drawn from the
plan's digest, so that every member computes the same graph. How many neighbours are needed: :mod:`.rules`.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from fedrec.data.ragged import Int64
from fedrec.errors import BadInput
from fedrec.secure.masks import derive
from fedrec.secure.randomness import Stream


def circle(digest: bytes, n: int, purpose: str = "circle") -> Int64:
    """Members in random order."""
    return np.argsort(Stream(derive(b"public", digest, purpose)).words(n), kind="stable")


def committee(digest: bytes, among: Int64, size: int) -> Int64:
    """The members whose signatures decide which list of survivors holds, drawn ``among`` these places; ascending."""
    return np.sort(among[circle(digest, len(among), "committee")[:size]])


def neighbour_table(order: Int64, k: int) -> Int64:
    """The neighbours of each member, ascending: ``[n, k]``; ``order`` is the circle."""
    n = len(order)
    if k >= n - 1:
        table = np.broadcast_to(np.arange(n), (n, n))
        return np.asarray(table[table != np.arange(n)[:, None]].reshape(n, n - 1))
    if k % 2 or k < 2:
        raise BadInput(f"a circle has an even number of neighbours, not {k}")
    steps = np.concatenate([np.arange(-(k // 2), 0), np.arange(1, k // 2 + 1)])
    table = np.empty((n, k), np.int64)
    table[order] = np.sort(order[(np.arange(n)[:, None] + steps) % n], axis=1)
    return table


def fewest_in_a_row(order: Int64, k: int, alive: NDArray[np.bool_]) -> int:
    """The fewest living among any k / 2 members in a row on the circle: where there is none, the circle is cut."""
    n, half = len(order), k // 2
    if k >= n - 1:
        return int(alive.sum())
    around = np.concatenate([[0], np.cumsum(np.concatenate([alive[order], alive[order[:half]]]))])
    return int((around[half : half + n] - around[:n]).min())
