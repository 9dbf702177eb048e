"""Which node hosts which clients, in the server's order. Once given, a number stays."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from fedrec.core.block import World
from fedrec.data.ragged import Int64
from fedrec.deploy.messages.letters import Hello
from fedrec.errors import BadInput
from fedrec.keyed import U64


@dataclass(frozen=True)
class Place(Hello):
    """A node, as it said who it is, and its clients' place in the server's order."""

    first: int = 0

    @property
    def clients(self) -> Int64:
        """The server's numbers of the node's clients."""
        return np.arange(self.first, self.first + len(self.client_keys))

    def among(self, clients: Int64) -> Int64:
        """Those of some clients that this node hosts."""
        return clients[(clients >= self.first) & (clients < self.first + len(self.client_keys))]


@dataclass(frozen=True)
class Roster:
    """All nodes, ordered by name, those that joined later last; a node's clients are numbered in its own order."""

    places: tuple[Place, ...]

    @classmethod
    def of(cls, hellos: list[Hello]) -> Roster:
        """The roster of the nodes that are there; a client on two nodes is refused."""
        return cls._in_order(sorted(hellos, key=lambda h: h.name))

    def with_newcomers(self, hellos: list[Hello]) -> Roster:
        """The same with nodes that came later behind the others, so that nobody's number changes."""
        return self._in_order([*self.places, *sorted(hellos, key=lambda h: h.name)])

    @classmethod
    def _in_order(cls, hellos: Sequence[Hello]) -> Roster:
        places: list[Place] = []
        first = 0
        for hello in hellos:
            places.append(Place(hello.name, hello.client_keys, hello.users, first=first))
            first += len(hello.client_keys)
        keys = np.concatenate([p.client_keys for p in places]) if places else np.zeros(0, np.uint64)
        names = [p.name for p in places]
        if len(set(names)) < len(names):
            raise BadInput(f"two nodes have the same name ({', '.join(names)}); give each its own --name")
        _, known, counts = np.unique(keys, return_inverse=True, return_counts=True)
        if (counts > 1).any():
            twice = np.flatnonzero(known == np.flatnonzero(counts > 1)[0])
            hosts = ", ".join(sorted({p.name for p in places if len(p.among(twice))}))
            raise BadInput(f"a client is hosted by two nodes ({hosts}); a user's data belongs on one node")
        return cls(tuple(places))

    def find(self, name: str) -> Place | None:
        return next((place for place in self.places if place.name == name), None)

    @property
    def client_keys(self) -> U64:
        return np.concatenate([place.client_keys for place in self.places])

    @property
    def users(self) -> Int64:
        return np.concatenate([place.users for place in self.places])

    def world(self, name: str, n_items: int) -> World:
        return World(name, n_items, int(self.users.sum()), len(self.client_keys))

    def as_dict(self) -> list[dict[str, Any]]:
        """Plain values, for the run's folder."""
        return [
            {"name": p.name, "keys": [str(k) for k in p.client_keys], "users": [int(n) for n in p.users]}
            for p in self.places
        ]

    @classmethod
    def from_dict(cls, plain: list[dict[str, Any]]) -> Roster:
        keys = [np.array([int(k) for k in p["keys"]], np.uint64) for p in plain]
        return cls._in_order(
            [Hello(p["name"], own, np.array(p["users"], np.int64)) for p, own in zip(plain, keys, strict=True)]
        )
