"""What was learnt, carried over to data that has grown: more items, more users, more interactions.

New rows are those of the method's own start in the larger world; every other number keeps its place with its item,
client, user or interaction. Which axis of an array counts what is found by starting the method in both worlds.
"""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fedrec.core.block import World
from fedrec.core.messages import Axis
from fedrec.core.method import Keys, Method
from fedrec.core.population import Population
from fedrec.core.reference import Central, Reference
from fedrec.data.ragged import Int64


class CannotGrow(Exception):
    """State that holds something whose place in the larger world is not known; says what."""


@dataclass(frozen=True)
class Moved:
    """Entries that are in both worlds: where they stood, and where they stand."""

    before: Int64
    now: Int64


@dataclass(frozen=True)
class Growth:
    """Where everything of a population stands in a larger one."""

    items: Moved
    clients: Moved
    users: Moved
    interactions: Moved
    worlds: tuple[World, World]

    @classmethod
    def of(cls, before: Population, now: Population, items: Int64, users: Int64) -> Growth:
        """``items`` and ``users``: the number now of each that was there before (users in the block's order)."""
        places = {name: place for place, name in enumerate(now.client_ids)}
        clients = np.array([places[name] for name in before.client_ids], np.int64)
        wide = np.int64(now.world.n_items)
        old, new = before.block.train, now.block.train
        known, there = users[old.owners] * wide + items[old.values], new.owners * wide + new.values
        _, left, right = np.intersect1d(known, there, assume_unique=True, return_indices=True)

        def all_of(numbers: Int64) -> Moved:
            return Moved(np.arange(len(numbers)), numbers)

        worlds = before.world, now.world
        return cls(all_of(items), all_of(clients), all_of(users), Moved(left, right), worlds)

    def along(self, axis: Axis) -> Moved | None:
        """Where the entries along a stacked axis are."""
        return {Axis.CLIENT: self.clients, Axis.USER: self.users, Axis.INTERACTION: self.interactions}.get(axis)

    def between(self, size: int, larger: int, items_only: int) -> Moved:
        """What an axis counts that has ``size`` entries before and ``larger`` now; ``items_only`` with new items but
        without new users."""
        old, new = self.worlds
        kinds = (
            (self.items, old.n_items, new.n_items, items_only == larger),
            (self.clients, old.n_clients, new.n_clients, items_only == size),
            (self.users, old.n_users, new.n_users, items_only == size),
        )
        for moved, first, then, fits in kinds:
            if (size, larger) == (first, then) and fits:
                return moved
        raise CannotGrow("")


def grown(
    method: Method[Any, Any, Any, Any] | Reference[Any],
    learnt: Any,
    starts: tuple[Any, Any],
    growth: Growth,
    central: Central,
    seed: int,
) -> Any:
    """A runtime's snapshot in the larger world; ``starts`` are the snapshots before the first round in both worlds.

    The second start is written into. ``central``: what a reference starts from in the smaller world.
    """
    before, now = starts
    keys, more_items = Keys(seed, 0), dataclasses.replace(growth.worlds[0], n_items=growth.worlds[1].n_items)
    if isinstance(method, Reference):
        between = method.start(dataclasses.replace(central, world=more_items), keys)
        model = _Carry(growth, method.anew).over(learnt["model"], before["model"], now["model"], between, "model")
        return {"model": model}
    carry = _Carry(growth, method.anew, method.item_numbers)
    between = method.start_server(more_items, keys)
    server = carry.over(learnt["server"], before["server"], now["server"], between, "server")
    private = carry.over(learnt["private"], before["private"], now["private"], now["private"], "private")
    return {"server": server, "private": private}


@dataclass(frozen=True)
class _Carry:
    growth: Growth
    anew: tuple[str, ...] = ()
    item_numbers: tuple[str, ...] = ()

    def over(self, learnt: Any, before: Any, now: Any, between: Any, path: str, axis: Axis = Axis.SHARED) -> Any:
        """One part of the state, and all that is in it."""
        parts = (learnt, before, now, between)
        if len({_kind(part) for part in (learnt, before, now)}) > 1:
            raise CannotGrow(path)
        if dataclasses.is_dataclass(now):
            return self._fields(parts, path)
        if isinstance(now, dict):
            if not learnt.keys() == before.keys() == now.keys():
                raise CannotGrow(path)
            return {k: self.over(learnt[k], before[k], now[k], between[k], f"{path}/{k}", axis) for k in now}
        if isinstance(now, list | tuple):
            if not len(learnt) == len(before) == len(now):
                raise CannotGrow(path)
            entries = enumerate(zip(*parts, strict=True))
            return type(now)(self.over(*some, f"{path}/{number}", axis) for number, some in entries)
        if isinstance(now, np.ndarray):
            return self._array(learnt, before, now, between, path, axis)
        return learnt if before == now else now  # a count of the world is that of the larger one

    def _fields(self, parts: tuple[Any, ...], path: str) -> Any:
        found = {}
        for field in dataclasses.fields(parts[2]):
            if field.name in self.anew and path in ("server", "model"):
                continue
            some: tuple[Any, Any, Any, Any]
            some = tuple(getattr(part, field.name) for part in parts)
            axis = field.metadata.get("axis", Axis.SHARED)
            found[field.name] = self.over(*some, f"{path}/{field.name}", axis)
            if field.name in self.item_numbers:
                if some[1].shape[1:] != some[2].shape[1:]:
                    raise CannotGrow(f"{path}/{field.name}")
                found[field.name] = self._renumbered(found[field.name])
        return dataclasses.replace(parts[2], **found)

    def _array(
        self, learnt: NDArray[Any], before: NDArray[Any], now: NDArray[Any], between: Any, path: str, axis: Axis
    ) -> NDArray[Any]:
        if learnt.shape != before.shape or now.ndim != before.ndim or between.ndim != now.ndim:
            raise CannotGrow(path)
        leading = self.growth.along(axis)
        places = []
        for number, (size, larger, mid) in enumerate(zip(before.shape, now.shape, between.shape, strict=True)):
            if number == 0 and leading is not None:
                places.append(leading)
            elif size == larger:
                places.append(Moved(np.arange(size), np.arange(size)))
            else:
                try:
                    places.append(self.growth.between(size, larger, mid))
                except CannotGrow:
                    raise CannotGrow(path) from None
        if not places:
            return learnt
        if not (now.flags.c_contiguous and now.flags.writeable):  # a start may be one row seen many times
            now = np.array(now, order="C")
        now[np.ix_(*(place.now for place in places))] = learnt[np.ix_(*(place.before for place in places))]
        return now

    def _renumbered(self, numbers: NDArray[Any]) -> NDArray[Any]:
        """Numbers of items as they are now; the size of the catalogue stands for none."""
        table = np.append(self.growth.items.now, self.growth.worlds[1].n_items)
        return np.asarray(table[np.minimum(numbers, len(table) - 1)], numbers.dtype)


def _kind(part: Any) -> Any:
    """What a part is: numbers may have changed from one kind to another, arrays may lie on disk."""
    if isinstance(part, bool | int | float):
        return float
    return np.ndarray if isinstance(part, np.ndarray) else type(part)
