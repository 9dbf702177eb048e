"""Whether what came over the network is what the method sends: its shape, its ranges, and finite.

What a message must look like is learnt from one: of a trial client, whose local work is done once (uploads), or of
the server's first state (downloads). What its numbers may be is declared beside each field
(:func:`fedrec.core.messages.per_client`).
"""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fedrec.core import misfit
from fedrec.core.block import Block, World
from fedrec.core.messages import ANY, Axis, Bound, Limit, Range, Rows, opened
from fedrec.core.method import Keys, Method, Update
from fedrec.core.misfit import Misfit, finite
from fedrec.data.ragged import Int64, Ragged
from fedrec.privacy.compressed import Compressed
from fedrec.privacy.fields import contents, most_coordinates, open_fields

TRIAL = 1e6
"""The largest number that a trial client may send, or lose: real clients, who have more items, send larger ones."""

Spec = dataclasses.Field[Any]
AnyMethod = Method[Any, Any, Any, Any]


def trial_clients(n_items: int, clients: Int64) -> Block:
    """Clients with one user each, who has the first items of the catalogue."""
    some = np.arange(min(3, max(1, n_items - 1)), dtype=np.int32)
    count = len(clients)
    items = Ragged(np.arange(count + 1, dtype=np.int64) * len(some), np.tile(some, count))
    keys = np.uint64(0x5EED) + np.arange(count, dtype=np.uint64)
    return Block(n_items, clients, keys, np.arange(count + 1, dtype=np.int64), keys, items, items)


@dataclass(frozen=True)
class Shape:
    """A message, against which others of its kind are held."""

    message: Any
    n_items: int
    most: float = misfit.MAGNITUDE
    """The largest floating number that it may hold."""

    def check_folded(self, message: Any, users: Int64) -> None:
        """Refuse compressed fields that do not unfold into what they stand for; before they are unfolded."""
        own = dict(opened(self.message))
        for spec, name, content in contents(message):
            if not isinstance(content, Compressed):
                continue
            plain = own.get(name)
            if isinstance(plain, Rows):
                content.require(name, len(users), (plain.n_items, plain.values.shape[1]), True)
            elif isinstance(plain, np.ndarray):
                length = _length(spec, message, users)
                misfit.require(length is not None, f"{name} is compressed, but not of a known length")
                content.require(name, length or 0, plain.shape[1:], False)
            else:
                raise Misfit(f"{name} is compressed where there is nothing to compress")

    def check(self, message: Any, users: Int64) -> None:
        """Hold the message of some clients (``users`` of each) against this one."""
        for spec in dataclasses.fields(message):
            own, content = getattr(self.message, spec.name), getattr(message, spec.name)
            if isinstance(own, dict) and isinstance(content, dict):
                if own.keys() != content.keys():
                    raise Misfit(f"{spec.name} has {sorted(content)[:5]}, not {sorted(own)[:5]}")
                for key, array in content.items():
                    self._check_one(spec, f"{spec.name}[{key}]", array, own[key], message, users)
            else:
                self._check_one(spec, spec.name, content, own, message, users)

    def _check_one(self, spec: Spec, name: str, content: Any, own: Any, message: Any, users: Int64) -> None:
        if isinstance(own, Rows) and isinstance(content, Rows):
            misfit.rows(name, content, len(users), own.n_items, own.values.shape[1])
            misfit.bounded(name, content.values, self.most)
        elif isinstance(own, np.ndarray) and isinstance(content, np.ndarray):
            same = spec.metadata.get("axis", Axis.SHARED) is Axis.SHARED and own.ndim
            _array(name, content, own, len(own) if same else _length(spec, message, users))
            misfit.bounded(name, content, self.most)
            self._in_range(name, spec, content, users)
        elif type(content) is not type(own):
            raise Misfit(f"{name} is {type(content).__name__}, not {type(own).__name__}")

    def _in_range(self, name: str, spec: Spec, content: NDArray[Any], users: Int64) -> None:
        given: Range = spec.metadata.get("range", ANY)
        axis = spec.metadata.get("axis", Axis.SHARED)
        each = users if axis is Axis.CLIENT else np.ones(1, np.int64)
        for bound, low in ((given.low, True), (given.high, False)):
            if bound is None or not content.size:
                continue
            most = self._bound(bound, each).reshape(-1, *(1 for _ in content.shape[1:]))
            outside = content < most if low else content > most
            if outside.any():
                first = tuple(int(place[0]) for place in np.nonzero(outside))
                limit = most.reshape(-1)[first[0] if len(most) > 1 else 0]
                raise Misfit(f"{name} has {content[first]}, which is {'below' if low else 'above'} {limit}")

    def _bound(self, bound: Bound, users: Int64) -> NDArray[Any]:
        """``[clients]``, or ``[1]`` where it is the same for all."""
        if bound is Limit.USERS:
            return users
        if bound is Limit.OWNED:
            return users * self.n_items
        same = {Limit.ITEM: self.n_items - 1, Limit.ITEMS: self.n_items}
        return np.array([same[bound] if isinstance(bound, Limit) else bound])


@dataclass(frozen=True)
class Received(Shape):
    """What a download looks like. Fields that are empty before the first round may be filled later."""

    @classmethod
    def of(cls, method: AnyMethod, world: World, seed: int) -> Received:
        """As a server with these clients alone would send it in the first round."""
        download = method.download(method.start_server(world, Keys(seed, 0)), np.arange(world.n_clients))
        return cls(download, world.n_items, np.inf)

    def _check_one(self, spec: Spec, name: str, content: Any, own: Any, message: Any, users: Int64) -> None:
        if own is None and isinstance(content, np.ndarray):
            misfit.bounded(name, content, self.most)
        elif not (content is None and own is None):
            super()._check_one(spec, name, content, own, message, users)


@dataclass(frozen=True)
class Template(Shape):
    """One client's upload, and what else a trial client can tell about a server's state."""

    world: World = field(default_factory=lambda: World("", 0, 0, 0))
    seed: int = 0

    @classmethod
    def of(cls, method: AnyMethod, server: Any, world: World, seed: int) -> Template:
        """Do a trial client's local work with the server's present state, which is not changed."""
        block = trial_clients(world.n_items, np.zeros(1, np.int64))
        upload = _trial(method, server, world, block, Keys(seed, 0))[1].upload
        return cls(upload, world.n_items, world=world, seed=seed)

    def exposure(self, users: int) -> tuple[int, tuple[str, ...]]:
        """The most protected numbers in an upload of a client with so many users, and the fields that leave as they
        are. Histories are not known here, so every user counts as having every item."""
        trial, most = trial_clients(self.n_items, np.zeros(1, np.int64)), np.array([float(users)])
        return most_coordinates(self.message, trial, most, most * self.n_items), open_fields(self.message)

    def works(self, method: AnyMethod, server: Any, clients: Int64) -> bool:
        """Whether clients could work with this state: a trial in their place stays far from what is refused."""
        block = trial_clients(self.n_items, clients)
        try:
            with np.errstate(all="ignore"):
                download, update = _trial(method, server, self.world, block, Keys(self.seed, 1))
                sent = replace(self, most=TRIAL)
                sent.check(update.upload, np.ones(len(clients), np.int64))
                scores = method.score(update.private, method.model(download), block)
                return float(np.abs(update.loss).max(initial=0)) <= TRIAL and finite(scores)
        except Exception:
            return False


def _trial(method: AnyMethod, server: Any, world: World, block: Block, keys: Keys) -> tuple[Any, Update[Any, Any]]:
    """The download and the local work of clients who start with this server's state."""
    private = method.start_clients(world, block, Keys(keys.seed, 0))
    download = method.download(server, block.clients)
    return download, method.local_update(private, download, block, keys)


def _length(spec: Spec, message: Any, users: Int64) -> int | None:
    """How many entries a field has along its axis; None where any number will do."""
    axis = spec.metadata.get("axis", Axis.SHARED)
    if axis is Axis.CLIENT:
        return len(users)
    if axis is Axis.USER:
        return int(users.sum())
    by = spec.metadata.get("counted_by")
    if axis is not Axis.INTERACTION or by is None:
        return None
    counts = getattr(message, by)
    misfit.flat(by, counts, "iu")
    misfit.require(len(counts) == 0 or int(counts.min()) >= 0, f"{by} has numbers below 0")
    return int(counts.sum(dtype=np.int64))


def _array(name: str, found: NDArray[Any], own: NDArray[Any], length: int | None) -> None:
    wanted = own.shape[1:] if own.ndim else ()
    if found.ndim != own.ndim or found.shape[1:] != wanted or (length is not None and len(found) != length):
        head = "any" if length is None else length
        raise Misfit(f"{name} has the shape {found.shape}, not {(head, *wanted)}")
    floating = found.dtype.kind == own.dtype.kind == "f"
    misfit.require(floating or found.dtype == own.dtype, f"{name} holds {found.dtype}, not {own.dtype}")
