"""The contract: what a federated method is. The same code runs in the simulator and on Flower."""

from __future__ import annotations

import hashlib
from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import Any, ClassVar, Generic, TypeVar

import numpy as np
from numpy.typing import NDArray

from fedrec import keyed
from fedrec.core.block import Block, World
from fedrec.core.messages import Download, Float32, Model, Private, Upload, fields_of, held
from fedrec.core.sums import Contribution, Folding, SumField, Summands, Sums
from fedrec.data.ragged import Int32, Int64

S = TypeVar("S")
P = TypeVar("P", bound=Private)
U = TypeVar("U", bound=Upload)
D = TypeVar("D", bound=Download)


FOLD_FROM = 1 << 20
"""The round from which new clients draw: no training comes that far."""


@dataclass(frozen=True)
class Card:
    """What a user must know before choosing a method; printed by ``fedrec methods NAME``."""

    title: str
    """One line."""
    paper: str
    private: str
    """What never leaves the client."""
    upload: str
    """What the client sends, each round."""
    sum_suffices: bool
    """Whether the server needs only the sum of uploads, so that secure aggregation is possible."""
    departures: tuple[str, ...] = ()
    """Where this differs from the paper or from its public code, and why."""
    robust: str = "none"
    """What guards the fold against dishonest clients unless a run says otherwise (:mod:`fedrec.robust.defence`)."""


@dataclass(frozen=True)
class Keys:
    """The randomness of one round: streams named by purpose, one per client, user or server."""

    seed: int
    round: int
    secret: str = field(default="", repr=False)
    """What only the clients' machine knows: mixed into what clients and users draw, so that a server that knows seed
    and keys cannot draw it again. Empty in a simulation, which can be repeated."""

    def clients(self, block: Block, purpose: str) -> keyed.U64:
        """``[clients]`` a stream for each client."""
        return keyed.streams(self._base(purpose), block.client_keys)

    def users(self, block: Block, purpose: str) -> keyed.U64:
        """``[users]`` a stream for each user."""
        return keyed.streams(self._base(purpose), block.user_keys)

    def _base(self, purpose: str) -> int:
        if not self.secret:
            return keyed.stream(self.seed, self.round, purpose)
        # a hash for each purpose: what an upload shows of one draw (a ticket) says nothing about another
        about = f"{self.seed}/{self.round}/{purpose}".encode()
        return int.from_bytes(hashlib.blake2b(about, key=self.secret.encode(), digest_size=8).digest(), "little")

    def server(self, purpose: str) -> np.random.Generator:
        """A generator for the server."""
        return keyed.numbers(self.seed, self.round, purpose)


@dataclass(frozen=True)
class Update(Generic[P, U]):
    """What comes out of a block's local work."""

    private: P
    upload: U
    loss: NDArray[np.float64]  # [clients] mean training loss of the last local epoch; 0 where nothing was learnt
    local: Model | None = None
    """What the clients hold right after training, for protocols that evaluate the local model. None where nothing
    but private state changed: then it is the model of the download that they trained from."""


@dataclass(frozen=True)
class Reply(Generic[U]):
    """The uploads of some clients, stacked in the order of ``clients`` (the server's numbers)."""

    clients: Int64
    upload: U


class Method(ABC, Generic[S, P, U, D]):
    """One federated method. Instances hold settings only; all state goes in and comes out."""

    name: ClassVar[str]
    card: ClassVar[Card]
    federates: ClassVar[bool] = True
    """Whether anything is learnt from other clients; the control `local` learns nothing from them."""
    small: ClassVar[dict[str, Any]] = {}
    """Settings for a quick run of the laws, where the usual small ones do not fit."""
    also_sent: ClassVar[tuple[str, ...]] = ()
    """Private fields that hold a copy of what the client has sent (law 6 finds every other one in an upload)."""
    enough: ClassVar[dict[str, Any]] = {}
    """Settings with which the method finds the planted answer (law 8)."""
    enough_rounds: ClassVar[int] = 20
    """Rounds within which it does."""
    fold_rounds: ClassVar[int] = 10
    """Rounds of local work by which somebody new finds its private state."""
    contributes_once: ClassVar[bool] = False
    """Whether a client's data enter the sums once, however many rounds it takes part in."""
    starts_over: ClassVar[bool] = False
    """Whether an update with more data begins again: the answer is computed from the data, not learnt bit by bit."""
    anew: ClassVar[tuple[str, ...]] = ()
    """Fields of the server's state that the next round makes again: they begin empty where the data has grown."""
    item_numbers: ClassVar[tuple[str, ...]] = ()
    """Fields of state whose values are numbers of items."""
    follows_history: ClassVar[bool] = False
    """Whether what a client sends follows from its history and its download alone: nothing drawn, nothing kept."""
    search: ClassVar[dict[str, Any]] = {}
    """What ``fedrec tune`` searches, by setting: ``{"low": 1, "high": 9, "log": True}`` or ``{"choices": [1, 3]}``."""
    private_form: ClassVar[dict[str, Any]] = {}
    """Settings that a privacy budget (``--epsilon``) brings with it."""
    Settings: ClassVar[type[Any]]
    Private: ClassVar[type[Any]]
    Upload: ClassVar[type[Any]]
    Download: ClassVar[type[Any]]

    def __init__(self, settings: Any = None, device: str = "cpu") -> None:
        self.settings: Any = self.Settings() if settings is None else settings
        self.device = device

    @abstractmethod
    def start_server(self, world: World, keys: Keys) -> S:
        """The server's state before the first round (round 0 of ``keys``)."""

    @abstractmethod
    def start_clients(self, world: World, block: Block, keys: Keys) -> P:
        """Private state of the block's clients before the first round."""

    @abstractmethod
    def download(self, server: S, clients: Int64) -> D:
        """What these clients receive: shared fields once, personal fields stacked in this order."""

    @abstractmethod
    def local_update(self, private: P, download: D, block: Block, keys: Keys) -> Update[P, U]:
        """One round of local work of the block. ``private`` may be written in place."""

    def sum_fields(self, server: S, users: int) -> Mapping[str, SumField]:
        """The sums that :meth:`finish` needs; ``users`` is the most that one client has."""
        raise NotImplementedError(f"{self.name} has no sums; it needs an aggregate() of its own")

    def summands(self, upload: U, download: D) -> Summands:
        """What each client adds to the sums, weights included: computed on the client."""
        raise NotImplementedError(f"{self.name} has no summands")

    def finish(self, server: S, sums: Sums, keys: Keys) -> S:
        """The server's next state, from the sums alone."""
        raise NotImplementedError(f"{self.name} does not say what it does with sums")

    def aggregate(self, server: S, replies: Iterator[Reply[U]], keys: Keys) -> S:
        """Fold the uploads into the server's state, as they come; by default through the sums."""
        folding = Folding(self.sum_fields(server, 1))
        for reply in replies:
            folding.add(reply.clients, self.summands(reply.upload, self.download(server, reply.clients)))
        return self.finish(server, folding.sums(), keys)

    def contribution(self) -> Contribution | None:
        """How large one user's part of the sums is by construction; None: what the upload's clip and weights say."""
        return None

    def silent(self, download: Any) -> Any:
        """Which clients add nothing to the method's sums, by what they are sent ``[clients]``; None: all add."""
        return None

    def silent_of(self, server: S, clients: Int64) -> Any:
        """The same of clients by what this server's state would send them, which most methods need not make."""
        return None if type(self).silent is Method.silent else self.silent(self.download(server, clients))

    def not_summed(self) -> str | None:
        """Why no sum suffices with these settings, as the end of a sentence; None where one does."""
        if not self.card.sum_suffices:
            return "its server needs each client's upload, not only their sum"
        if type(self).summands is Method.summands:
            return "it has no summands() and finish(), only an aggregate() that sees each upload"
        return None

    def model(self, download: D) -> Any:
        """What a client makes of its download, to score with; a :class:`~fedrec.core.messages.Model`.

        By default the download's own fields, which from here on cannot be encoded any more.
        """
        return held(download)

    @abstractmethod
    def score(self, private: P, model: Any, block: Block, items: Int32 | None = None) -> Float32:
        """Scores of all items ``[users, n_items]``, or of ``items`` ``[users, k]``; higher is better."""

    def whole_values(self, server: S, clients: Int64) -> Mapping[str, Any]:
        """Fields of an upload that are whole values, not changes, each with what it is a change of (as sent)."""
        return {}

    def new_client(self, server: S) -> D | None:
        """What one client receives that was not in training; None: what all clients receive, on average.

        For methods whose downloads cannot be averaged number by number.
        """
        return None

    def fold_in(self, download: D, world: World, block: Block, keys: Keys) -> P:
        """Private state of clients that were not in training, out of their own histories; nothing is sent.

        By default local work as in training, of which only the private parts are kept: every round starts from the
        same download. Where there is nothing private, the history alone decides. A method that cannot serve
        somebody new raises :class:`~fedrec.errors.BadInput` with the reason.
        """
        private: P = self.start_clients(world, block, keys)
        if any(content is not None and not _is_empty(content) for _, _, content in fields_of(private)):
            for number in range(1, self.fold_rounds + 1):
                private = self.local_update(private, download, block, replace(keys, round=keys.round + number)).private
        return private

    def settled_after(self) -> int | None:
        """Rounds with every client after which more would change nothing; None: it goes on learning."""
        return None

    def client_bytes(self, world: World) -> int:
        """Working memory that one client needs in :meth:`local_update`, so that blocks can be sized."""
        dim = int(getattr(self.settings, "dim", 64))
        return 16 * world.n_items + 64 * dim * min(world.n_items, 512)

    def in_process_bytes(self, world: World) -> int:
        """The same where no message is written out, as in a simulation: tables of changes may stay rows."""
        return self.client_bytes(world)


def _is_empty(content: Any) -> bool:
    """Whether a field of private state holds no numbers at all."""
    return not content if isinstance(content, dict) else getattr(content, "size", 1) == 0
