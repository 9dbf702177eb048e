"""The contract of an attack: who runs it, what it may see, and what it hands back."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, Literal

import numpy as np
from numpy.typing import NDArray

from fedrec.core.block import World
from fedrec.core.messages import Upload, per_client
from fedrec.core.method import Keys, Method
from fedrec.data.ragged import Int64

Float64 = NDArray[np.float64]
Who = Literal["server", "active server", "participant", "clients"]


@dataclass(frozen=True)
class AttackCard:
    """What a reader of a table must know; printed by ``fedrec audit --list``."""

    title: str
    """One line."""
    paper: str
    who: Who
    """A curious server, one that does not keep to the protocol, a curious participant, or dishonest clients."""
    sees: str
    """What it may look at or change."""


@dataclass(frozen=True)
class Vector(Upload):
    """What is there in the place of an upload with secure sums: a masked vector, or a cohort's sum."""

    fields: dict[str, Any] = per_client()
    """``[1, ...]`` the method's sums by name, read with the scale that everybody knows."""


@dataclass(frozen=True)
class Exchanged:
    """What one client received and sent in one round, decoded from the bytes that crossed."""

    number: int
    download: Any
    upload: Any
    """With one client in it; with secure sums, a :class:`Vector`."""
    loss: float = float("nan")
    metrics: Mapping[str, float] | None = None
    """What the client's users got on validation with this download, where a node of its own reports it."""
    among: Int64 | None = None
    """The clients whose sum the upload is (who takes part is no secret); None: the upload is the client's own."""


@dataclass(frozen=True)
class Seen:
    """All rounds of one client, as the attacker sees them."""

    method: Method[Any, Any, Any, Any]
    world: World
    client: int
    users: int
    rounds: tuple[Exchanged, ...]


@dataclass(frozen=True)
class History:
    """All items of somebody, nobody knows whose."""

    items: Int64
    after: int = 0
    """How often others had to be taken off before it could be seen; 0: it stands in a message as it is."""


@dataclass(frozen=True)
class Found:
    """A guess about one client, or about those in its sum; what an attack says nothing about is None."""

    scores: Float64 | None = None  # [n_items] higher: more likely one of the client's items
    chosen: NDArray[np.bool_] | None = None  # [n_items] the items it names; None: the best, as many as there are
    size: float | None = None
    """How many items the client has."""
    blind: Float64 | None = None  # [n_items] what it would have guessed without the message that it reads
    histories: tuple[History, ...] | None = None
    """Whole histories of some who are in the message."""

    @classmethod
    def of(cls, chosen: NDArray[np.bool_], scores: Float64 | None = None) -> Found:
        """Items that are named, and so how many there are."""
        return cls(chosen.astype(float) if scores is None else scores, chosen, float(chosen.sum()))


class Reader(ABC):
    """Somebody who reads messages and keeps to the protocol."""

    name: ClassVar[str]
    card: ClassVar[AttackCard]
    rounds: ClassVar[int] = 1
    """Rounds it wants to look at."""
    seeks: ClassVar[Literal["trained", "held-out"]] = "trained"
    """Which of the client's items it names: those it trains on, or what is held out for validation."""

    @abstractmethod
    def read(self, seen: Sequence[Seen]) -> list[Found | None]:
        """A guess for each client; None where the messages have nothing of the kind it reads."""


class Asking(Reader):
    """A server that does not keep to the protocol: it sends clients what it likes, and reads what comes back."""

    @abstractmethod
    def suits(self, method: Any) -> bool:
        """Whether it knows what to send to this method's clients."""

    @abstractmethod
    def asks(self, method: Any, download: Any, number: int) -> Any:
        """What it sends in the place of a round's download."""


class Alone(Reader):
    """A reader that looks at each client by itself."""

    def read(self, seen: Sequence[Seen]) -> list[Found | None]:
        return [self.one(client) for client in seen]

    @abstractmethod
    def one(self, seen: Seen) -> Found | None:
        """A guess about this client, or None."""


@dataclass(frozen=True)
class Facts:
    """What dishonest clients know."""

    world: World
    target: int
    """The item to be promoted."""
    popular: Int64
    """The most popular items, where an attack may know them (PipAttack)."""
    seed: int
    adaptive: bool = False
    """Whether they know the defence and stay below its bounds."""


class Poison(ABC):
    """Clients that send something else than what they should. All of them act together."""

    name: ClassVar[str]
    card: ClassVar[AttackCard]
    promotes: ClassVar[bool] = False
    """Whether it wants an item in everybody's list, rather than damage."""

    def __init__(self, facts: Facts) -> None:
        self.facts = facts

    def history(self, own: NDArray[np.int32]) -> NDArray[np.int32]:
        """What a dishonest user pretends to have, before the run."""
        return own

    def trains_on(self, scores: Float64, own: NDArray[np.int32]) -> NDArray[np.int32] | None:
        """What it trains on this round instead, as many items; ``scores`` ``[n_items]`` are its own model's."""
        return None

    wants_scores: ClassVar[bool] = False
    """Whether :meth:`trains_on` is to be asked."""

    @abstractmethod
    def sent(self, upload: Any, download: Any, clients: int, keys: Keys) -> Any | None:
        """What these clients send instead of ``upload`` (theirs, stacked); None where nothing fits this method."""
