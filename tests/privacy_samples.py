"""A small upload with every kind of field, and the block it belongs to."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from fedrec import keyed
from fedrec.core.block import Block
from fedrec.core.messages import Rows, Upload, per_client, per_user
from fedrec.data.ragged import Ragged, offsets

N_ITEMS, DIM = 7, 3


@dataclass(frozen=True)
class Sample(Upload):
    """Every kind of field."""

    items: Rows = per_client()
    network: NDArray[np.float32] = per_client()  # [clients, 2, 2]
    people: NDArray[np.float32] = per_user()  # [users, 2]
    weight: NDArray[np.float32] = per_client(protect=False)
    counts: NDArray[np.int64] = per_client()  # [clients]


def make_block(users_of_client: list[int], n_items: int = N_ITEMS) -> Block:
    """A block whose clients hold these numbers of users, one training item each."""
    clients, users = len(users_of_client), sum(users_of_client)
    train = Ragged(np.arange(users + 1, dtype=np.int64), np.zeros(users, np.int32))
    return Block(
        n_items=n_items,
        clients=np.arange(clients, dtype=np.int64),
        client_keys=keyed.keys_of(f"client {c}" for c in range(clients)),
        user_start=offsets(np.array(users_of_client)),
        user_keys=keyed.keys_of(f"user {u}" for u in range(users)),
        train=train,
        exclude=train,
    )


def make_rows(counts: list[int], n_items: int, dim: int, rng: np.random.Generator) -> Rows:
    """Random changes of ``counts[c]`` rows by client c."""
    ids = [np.sort(rng.choice(n_items, count, replace=False)) for count in counts]
    values = rng.normal(size=(sum(counts), dim)).astype(np.float32)
    return Rows(offsets(np.array(counts)), np.concatenate(ids).astype(np.int32), values, n_items)


def make_sample(users_of_client: list[int], rng: np.random.Generator) -> Sample:
    clients = len(users_of_client)
    return Sample(
        items=make_rows([int(c) for c in rng.integers(0, N_ITEMS, clients)], N_ITEMS, DIM, rng),
        network=rng.normal(size=(clients, 2, 2)).astype(np.float32),
        people=rng.normal(size=(sum(users_of_client), 2)).astype(np.float32),
        weight=np.arange(1, clients + 1, dtype=np.float32),
        counts=np.arange(clients, dtype=np.int64),
    )
