"""Server steps that need sums only: what each client adds to them, and how they are folded.

A method whose card says that a sum suffices has no :meth:`~fedrec.core.method.Method.aggregate` of its own but

    sum_fields(server, users)      which sums it needs, of which shape and how large a client's part can be
    summands(upload, download)     what each client adds, weights included: computed on the client
    finish(server, sums, keys)     the server's next state, from the sums alone

The plain runtime folds the summands as uploads come; with secure sums (:mod:`fedrec.secure`) every participant adds up
those of its clients, and the server sees no more than the totals. Both go through the same three functions.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fedrec.core.fold import Float64, add_clients, add_rows, weighted_sum
from fedrec.core.messages import Array, Rows
from fedrec.data.ragged import Int64


@dataclass(frozen=True)
class SumField:
    """One sum that a method needs."""

    shape: tuple[int, ...]
    weight: float = 1.0
    """The largest weight with which a client's numbers enter."""
    bound: float | None = None
    """The largest magnitude of one client's number, weight included, where more is known than clip and weight say."""
    protected: bool = True
    """Whether its numbers come from fields that clip and noise reach."""


@dataclass(frozen=True)
class Contribution:
    """How large what one user adds to the sums can be, where the method itself sees to it."""

    norm: float
    """L2, over all protected fields together, weights included."""
    nonnegative: bool = False
    """Whether no number of it is below zero."""


@dataclass(frozen=True)
class Summand:
    """What each client adds to one sum: ``weights[c] * values[c]``, in 64 bits; not built for all clients at once."""

    values: Rows | Array  # [clients, ...]
    weights: NDArray[Any] | None = None  # [clients]; None: 1

    def add_to(self, total: Float64) -> None:
        """``total += sum over clients``, in place."""
        if isinstance(self.values, Rows):
            add_rows(total, self.values, self.weights)
        elif self.weights is None:
            add_clients(total, self.values)
        else:
            total += weighted_sum(self.values, self.weights)

    def between(self, first: int, last: int) -> Summand:
        """Of the clients ``first .. last`` alone."""
        values = self.values
        own = values.take(np.arange(first, last)) if isinstance(values, Rows) else values[first:last]
        return Summand(own, None if self.weights is None else self.weights[first:last])

    def of(self, client: int) -> Float64:
        """One client's part, as a dense array."""
        weight = 1.0 if self.weights is None else float(self.weights[client])
        if not isinstance(self.values, Rows):
            return np.asarray(self.values[client] * np.float64(weight))
        own = slice(self.values.start[client], self.values.start[client + 1])
        dense = np.zeros((self.values.n_items, self.values.values.shape[1]))
        dense[self.values.ids[own]] = self.values.values[own] * np.float64(weight)
        return dense


Summands = Mapping[str, Summand]


@dataclass(frozen=True)
class Sums:
    """The totals of a round and who is in them: all that :meth:`~fedrec.core.method.Method.finish` is given."""

    totals: Mapping[str, Float64]
    clients: Int64
    """The server's numbers of the clients in the sums; who takes part is no secret."""
    noise: Mapping[str, float] = field(default_factory=dict)
    """Deviation of the noise in each number of a total, where participants added any."""

    def __getitem__(self, name: str) -> Float64:
        return self.totals[name]

    @property
    def count(self) -> int:
        return len(self.clients)


class Folding:
    """Sums of a round while uploads come."""

    def __init__(self, fields: Mapping[str, SumField]) -> None:
        self.totals = {name: np.zeros(field.shape) for name, field in fields.items()}
        self.clients: list[Int64] = []

    def add(self, clients: Int64, summands: Summands) -> None:
        if set(summands) != set(self.totals):
            raise ValueError(f"summands {sorted(summands)} are not those of the sums {sorted(self.totals)}")
        for name, summand in summands.items():
            summand.add_to(self.totals[name])
        self.clients.append(clients)

    def add_totals(self, clients: Int64, totals: Mapping[str, Float64]) -> None:
        """What some clients' summands come to, where somebody has added them up already."""
        for name, total in totals.items():
            self.totals[name] += total
        self.clients.append(clients)

    def sums(self) -> Sums:
        return Sums(self.totals, np.concatenate([np.zeros(0, np.int64), *self.clients]))
