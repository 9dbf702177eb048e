"""A block: several clients handled together, their interactions in ragged (CSR) arrays."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from fedrec.data.ragged import Int64, Ragged, lengths, offsets, segments
from fedrec.keyed import U64


@dataclass(frozen=True)
class World:
    """What everybody knows: the catalogue and the size of the population. Nothing about anyone."""

    name: str
    n_items: int
    n_users: int
    n_clients: int


@dataclass(frozen=True)
class Block:
    """Clients with their users and what those users have; all of it stays where the block is.

    ``users`` of client ``c`` are the rows ``user_start[c] .. user_start[c + 1]`` of every per-user array.
    Training items are in time order (the source's order where there is no time).
    """

    n_items: int
    clients: Int64  # [clients] the server's number for each client
    client_keys: U64  # [clients] for keyed randomness: depends on the client's own id only
    user_start: Int64  # [clients + 1]
    user_keys: U64  # [users]
    train: Ragged  # per user: items to learn from
    exclude: Ragged  # per user, sorted: items never drawn as training negatives
    ordered: bool = True
    """Whether the order of a user's training items is one of time."""
    valid: Ragged | None = None
    """Per user: items that choose between models, where the client has them. They are not learnt from."""

    @property
    def n_clients(self) -> int:
        return len(self.clients)

    @property
    def n_users(self) -> int:
        return len(self.user_keys)

    @property
    def single(self) -> bool:
        """Whether every client holds exactly one user."""
        return self.n_users == self.n_clients and bool((np.diff(self.user_start) == 1).all())

    @cached_property
    def client_of_user(self) -> Int64:
        """``[users]`` position in the block of the client that holds each user."""
        return np.repeat(np.arange(self.n_clients), np.diff(self.user_start))

    @cached_property
    def sizes(self) -> Int64:
        """``[clients]`` number of training interactions of each client."""
        return np.diff(self.train.start[self.user_start])

    def take(self, positions: NDArray[np.integer]) -> Block:
        """The clients at these positions, in this order."""
        users = segments(self.user_start, positions)
        same = self.exclude is self.train
        train = self.train.take(users)
        return Block(
            n_items=self.n_items,
            clients=self.clients[positions],
            client_keys=self.client_keys[positions],
            user_start=offsets(lengths(self.user_start, positions)),
            user_keys=self.user_keys[users],
            train=train,
            exclude=train if same else self.exclude.take(users),
            ordered=self.ordered,
            valid=None if self.valid is None else self.valid.take(users),
        )
