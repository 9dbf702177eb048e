"""All clients of a federation and its server as one state that can score, for those in training and for new ones."""

from __future__ import annotations

import copy
from typing import Any

from fedrec.core import wire
from fedrec.core.block import Block
from fedrec.core.disk_array import forget_fields
from fedrec.core.messages import Float32, gather
from fedrec.core.method import Keys, Method
from fedrec.core.newcomers import folded
from fedrec.core.outgoing import Outgoing
from fedrec.core.population import Population
from fedrec.core.state import Expected, alike
from fedrec.data.ragged import Int64
from fedrec.memory import MIB


class Clients:
    """The server's state and what every client keeps."""

    def __init__(
        self,
        method: Method[Any, Any, Any, Any],
        people: Population,
        seed: int,
        *,
        memory_mb: int = 1024,
        block_clients: int | None = None,
    ) -> None:
        self.method, self.people, self.seed = method, people, seed
        self.form = wire.Form.of(method.settings)
        start = Keys(seed, 0)
        self.server: Any = method.start_server(people.world, start)
        self.block_clients = block_clients or max(1, memory_mb * MIB // max(1, method.in_process_bytes(people.world)))
        self.private: Any = method.start_clients(people.world, people.block, start)
        self.outgoing = Outgoing(method, self.form)

    def at_home(self, clients: Int64) -> tuple[Any, Any, Block]:
        """What some clients have: their private state, a fresh download, their data."""
        block = self.people.block.take(clients)
        private = gather(self.private, self.people.block, clients)
        return private, self.outgoing.download(self.server, block.clients), block

    def scores(self, clients: Int64) -> Float32:
        """Scores ``[users, n_items]`` of the users of some clients, with a fresh download."""
        private, download, block = self.at_home(clients)
        found = self.method.score(private, self.outgoing.model(download), block)
        forget_fields(self.private)
        forget_fields(download)
        return found

    def scores_of_new(self, block: Block) -> Float32:
        """Scores ``[users, n_items]`` of clients that were not in training, by what they have."""
        world = self.people.world
        return folded(
            self.method, self.outgoing.for_new(self.server, world), world, block, self.seed, self.outgoing.model
        )

    def snapshot(self) -> Any:
        # a round makes a new server's state and leaves the old one as it was (law 1), however large: no copy
        return {"server": self.server, "private": copy.deepcopy(self.private)}

    def expected(self) -> Expected:
        """What a snapshot that comes from a file must be."""
        return alike(self.people.world.n_items, server=self.server, private=self.private)

    def restore(self, state: Any) -> None:
        # a deep copy: local work may write private arrays in place
        self.server, self.private = state["server"], copy.deepcopy(state["private"])
