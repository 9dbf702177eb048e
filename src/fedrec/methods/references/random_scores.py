"""Random scores: what chance gives. A control in every report."""

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
