"""Whether what a node sends has the shape it must have, and is finite.

What it must have is learnt by doing the method's local work once on a made-up client.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from fedrec.core.block import Block, World
from fedrec.core.messages import Axis, Rows, fields_of
from fedrec.core.method import Keys, Method
from fedrec.data.ragged import Int64, Ragged
from fedrec.privacy.fields import coordinates, open_fields


class Misfit(Exception):
    """An upload that is not what the method sends; the message says where."""


def made_up_client(n_items: int) -> Block:
    """One client with one user who has the first items of the catalogue."""
    some = np.arange(min(3, max(1, n_items - 1)), dtype=np.int32)
    items = Ragged(np.array([0, len(some)], np.int64), some)
    key = np.array([0x5EED], np.uint64)
    return Block(n_items, np.zeros(1, np.int64), key, np.array([0, 1], np.int64), key, items, items)


@dataclass(frozen=True)
class Template:
    """One client's upload, against which others are held."""

    upload: Any
    exposure: tuple[int, tuple[str, ...]]
    """Protected numbers in one client's upload, and the fields that leave as they are."""

    @classmethod
    def of(cls, method: Method[Any, Any, Any, Any], server: Any, world: World, seed: int) -> Template:
        """Do one made-up client's local work with the server's present state, which is not changed."""
        block, keys = made_up_client(world.n_items), Keys(seed, 0)
        private = method.start_clients(world, block, keys)
        update = method.local_update(private, method.download(server, block.clients), block, keys)
        numbers = int(coordinates(update.upload, block).max(initial=0))
        return cls(update.upload, (numbers, open_fields(update.upload)))

    def check(self, upload: Any, users: Int64) -> None:
        """Hold an upload of some clients (``users`` of each) against the template."""
        own = {name: content for name, _, content in fields_of(self.upload)}
        lengths = {Axis.CLIENT: len(users), Axis.USER: int(users.sum())}
        for name, axis, content in fields_of(upload):
            if isinstance(own[name], dict) and isinstance(content, dict):
                if own[name].keys() != content.keys():
                    raise Misfit(f"{name} has {sorted(content)}, not {sorted(own[name])}")
                for key, array in content.items():
                    _array(f"{name}[{key}]", array, own[name][key], lengths.get(axis))
            elif isinstance(own[name], Rows) and isinstance(content, Rows):
                _rows(name, content, own[name], len(users))
            elif isinstance(own[name], np.ndarray) and isinstance(content, np.ndarray):
                _array(name, content, own[name], lengths.get(axis))
            elif type(content) is not type(own[name]):
                raise Misfit(f"{name} is {type(content).__name__}, not {type(own[name]).__name__}")


def _array(name: str, found: Any, own: Any, length: int | None) -> None:
    wanted = own.shape[1:] if own.ndim else ()
    if found.ndim != own.ndim or found.shape[1:] != wanted or (length is not None and len(found) != length):
        head = "any" if length is None else length
        raise Misfit(f"{name} has the shape {found.shape}, not {(head, *wanted)}")
    if found.dtype.kind != own.dtype.kind:
        raise Misfit(f"{name} holds {found.dtype}, not {own.dtype}")
    _finite(name, found)


def _rows(name: str, found: Rows, own: Rows, clients: int) -> None:
    if found.n_items != own.n_items or found.values.shape[1:] != own.values.shape[1:]:
        raise Misfit(
            f"{name} is for {found.n_items} items with rows {found.values.shape[1:]}, "
            f"not {own.n_items} with {own.values.shape[1:]}"
        )
    start, ids = found.start, found.ids
    fits = len(start) == clients + 1 and start[0] == 0 and start[-1] == len(ids) == len(found.values)
    if not fits or (np.diff(start) < 0).any():
        raise Misfit(f"{name} is cut into {len(start) - 1} clients, not {clients}")
    if len(ids):
        inside = np.ones(len(ids), bool)
        inside[start[:-1][np.diff(start) > 0]] = False  # a client's first row follows nothing
        if ids.min() < 0 or ids.max() >= own.n_items or (np.diff(ids, prepend=-1)[inside] <= 0).any():
            raise Misfit(f"{name} names items that are not in the catalogue, or not in order")
    _finite(name, found.values)


def _finite(name: str, values: Any) -> None:
    if values.dtype.kind == "f" and not np.isfinite(values).all():
        raise Misfit(f"{name} is not finite")
