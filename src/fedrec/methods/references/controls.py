"""Controls in every report: chance, and the same list of the most popular items for everybody."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from fedrec import keyed
from fedrec.core.messages import Float32
from fedrec.core.method import Card, Keys
from fedrec.core.reference import Central, Reference
from fedrec.data.ragged import Int64


@dataclass(frozen=True)
class RandomState:
    """The stream that scores are drawn from."""

    stream: str


class RandomScores(Reference[RandomState]):
    """Every item gets a random score, keyed by user and item."""

    name = "random"
    card = Card(
        title="random scores: chance, the floor of every table",
        paper="none",
        private="nothing",
        upload="nothing",
        sum_suffices=True,
    )

    def start(self, data: Central, keys: Keys) -> RandomState:
        return RandomState(str(keyed.stream(keys.seed, "random scores")))

    def step(self, state: RandomState, data: Central, keys: Keys) -> tuple[RandomState, float]:
        return state, 0.0

    def score(self, state: RandomState, data: Central, users: Int64) -> Float32:
        streams = keyed.streams(int(state.stream), users.astype(np.uint64))
        return keyed.uniform(streams, data.world.n_items).astype(np.float32)

    def score_new(self, state: RandomState, data: Central, new: Central, users: keyed.U64, keys: Keys) -> Float32:
        return keyed.uniform(keyed.streams(int(state.stream), users), data.world.n_items).astype(np.float32)


@dataclass(frozen=True)
class Counts:
    """How often each item occurs in training."""

    items: Float32  # [n_items]


class Popularity(Reference[Counts]):
    """Scores an item by its number of training interactions."""

    name = "popularity"
    card = Card(
        title="items ranked by how many users have them: what a method must beat to have learnt anything personal",
        paper="none",
        private="nothing (a federated count would need one sum)",
        upload="nothing: a centralised reference",
        sum_suffices=True,
    )

    def start(self, data: Central, keys: Keys) -> Counts:
        return Counts(np.zeros(data.world.n_items, np.float32))

    def step(self, state: Counts, data: Central, keys: Keys) -> tuple[Counts, float]:
        return Counts(np.bincount(data.train.values, minlength=data.world.n_items).astype(np.float32)), 0.0

    def score(self, state: Counts, data: Central, users: Int64) -> Float32:
        return np.broadcast_to(state.items, (len(users), data.world.n_items))
