"""A centralised reference as a state that can score, for users in training and for new ones."""

from __future__ import annotations

import copy
from typing import Any

from fedrec.core.block import Block
from fedrec.core.messages import Float32
from fedrec.core.method import Keys
from fedrec.core.population import Population
from fedrec.core.reference import Central, Reference
from fedrec.core.state import Expected, alike
from fedrec.data.ragged import Int64, segments


class Collected:
    """All histories in one place and the model made from them."""

    def __init__(self, reference: Reference[Any], people: Population, seed: int) -> None:
        self.reference, self.people, self.seed = reference, people, seed
        self.data = Central(people.world, people.block.train, people.block.exclude, people.block.ordered)
        self.state: Any = reference.start(self.data, Keys(seed, 0))

    def scores(self, clients: Int64) -> Any:
        """Scores ``[users, n_items]`` of the users of some clients."""
        users = segments(self.people.block.user_start, clients)
        return self.reference.score(self.state, self.data, users)

    def scores_of_new(self, block: Block) -> Float32:
        """Scores ``[users, n_items]`` of users that were not in training, by what they have."""
        new = Central(self.people.world, block.train, block.exclude, block.ordered)
        return self.reference.score_new(self.state, self.data, new, block.user_keys, Keys(self.seed, 0))

    def snapshot(self) -> Any:
        return {"model": copy.deepcopy(self.state)}

    def expected(self) -> Expected:
        """What a snapshot that comes from a file must be."""
        return alike(model=self.state)

    def restore(self, state: Any) -> None:
        self.state = copy.deepcopy(state["model"])
