"""What crosses the wire between server and node, as plain values; nothing else does.

Down: which round, the method's download, who trains. Up: the method's uploads, a loss sum, metric sums. Once
a run, when server and node meet: the run's settings and the public item catalogue down; the node's name and,
for each of its clients, a key (a hash of the client's id) and its number of users up.
"""

from __future__ import annotations

import hashlib
import json
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from fedrec.core.block import World
from fedrec.data.ragged import Int64
from fedrec.evaluation.sums import MetricSums
from fedrec.keyed import U64


@dataclass(frozen=True)
class Meet:
    """The server's first word to a node."""

    run: str
    """Names this run in the node's own folder."""
    settings: str
    """Run settings as JSON."""
    catalogue: tuple[str, ...]
    """The public item ids in order, where nodes bring their own files; empty where data is named."""
    challenge: str = ""
    """Drawn anew for each node and meeting; the node's proof of its name covers it."""


@dataclass(frozen=True)
class Hello:
    """The node's first word: who it is and whom it hosts."""

    name: str
    client_keys: U64  # [clients]
    users: Int64  # [clients] how many users each client has
    proof: bytes = b""
    """The node's signature under :meth:`claim`; empty where a node has no key."""

    def hosts_as(self, other: Hello) -> bool:
        """Whether this node hosts the very clients that another has, or that it had itself before."""
        return np.array_equal(self.client_keys, other.client_keys) and np.array_equal(self.users, other.users)

    def claim(self, word: Meet) -> bytes:
        """What a node signs: that it, under this name, hosts these clients in this run."""
        hosted = hashlib.blake2b(self.client_keys.tobytes() + self.users.tobytes(), digest_size=32).hexdigest()
        return json.dumps(["fedrec hello", word.run, word.challenge, self.name, hosted]).encode()


@dataclass(frozen=True)
class Ask:
    """One round's message to one node."""

    run: str
    world: World
    first: int
    """The server's number of the node's first client; the others follow."""
    base: int
    """The node's last round that the server has taken: its private state is what the node starts from."""
    selected: int
    """The best round so far: the node keeps its state."""
    evaluate: int = 0
    """Evaluate private state with this download, as the model of this round; 0 for not."""
    train: int = 0
    """Train this round; 0 for not."""
    local: bool = False
    """Evaluate local models right after training."""
    whole: bool = True
    """Whether the download covers all of the node's clients, or only those that train."""
    positions: Int64 = field(default_factory=lambda: np.zeros(0, np.int64))
    """Which of the node's clients train, ascending."""
    download: bytes = b""

    def digest(self) -> str:
        """The same for the same work: a repeated message is answered with the stored answer."""
        head = (self.run, self.world, self.first, self.base, self.evaluate, self.train, self.local, self.whole)
        hashed = hashlib.blake2b(repr(head).encode(), digest_size=16)
        hashed.update(self.positions.astype(np.int64).tobytes())
        hashed.update(self.download)
        return hashed.hexdigest()


@dataclass(frozen=True)
class Selected:
    """The server's last word: which round was selected."""

    run: str
    selected: int


@dataclass(frozen=True)
class Answer:
    """A node's answer to :class:`Ask`."""

    uploads: tuple[bytes, ...] = ()
    """Encoded uploads, in parts of consecutive clients."""
    counts: tuple[int, ...] = ()
    """How many of the training clients each part covers."""
    loss: float = 0.0
    """Sum of the clients' losses."""
    valid: MetricSums = field(default_factory=MetricSums)
    test: MetricSums = field(default_factory=MetricSums)
    """Sums of the evaluated model (``evaluate``, or ``local``)."""

    def about(self) -> dict[str, Any]:
        """All but the uploads, as plain values."""
        sums = {"valid": self.valid.as_dict(), "test": self.test.as_dict()}
        return {"counts": list(self.counts), "loss": self.loss, **sums}


@dataclass(frozen=True)
class Step:
    """One step of a secure sum, to one node: what goes to each of its members (:mod:`fedrec.secure`)."""

    run: str
    step: int
    """0 advertise (``contents`` is the plan alone, under the name ``plan``), then share, input, confirm, unmask."""
    contents: dict[str, bytes]


@dataclass(frozen=True)
class Stepped:
    """A node's answer to :class:`Step`: what its members say; those that are silent are not in it."""

    contents: dict[str, bytes]


@dataclass(frozen=True)
class Fault:
    """Why there is no answer."""

    reason: str
