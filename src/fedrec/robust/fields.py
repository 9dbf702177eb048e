"""Uploads as the server sees them: which numbers belong to which client, and how large each client's change is."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fedrec.core.block import Block
from fedrec.core.fold import Float64
from fedrec.core.messages import Axis, Limit, Upload, fields_of
from fedrec.core.method import Method, Reply
from fedrec.data.ragged import Int64, Ragged, offsets
from fedrec.privacy.clip import norms_of
from fedrec.privacy.fields import Part, protected, with_fields


@dataclasses.dataclass(frozen=True)
class View:
    """What the server knows of a round's uploads beside their numbers."""

    method: Method[Any, Any, Any, Any]
    server: Any
    users: Int64
    """``[all clients]`` how many users each client has."""
    n_items: int

    def places(self, reply: Reply[Any]) -> Block:
        """The clients of a reply as a block without data: it says where each one's entries lie."""
        users = self.users[reply.clients]
        return Block(
            n_items=0,
            clients=reply.clients,
            client_keys=np.zeros(len(users), np.uint64),
            user_start=offsets(users),
            user_keys=np.zeros(int(users.sum()), np.uint64),
            train=_lengths(reply.upload, users),
            exclude=Ragged(np.zeros(1, np.int64), np.zeros(0, np.int32)),
        )

    def parts(self, reply: Reply[Any]) -> list[Part]:
        """The floating fields of a reply as changes: of whole values, what the server sent is taken off."""
        parts = protected(reply.upload, self.places(reply))
        base = self.method.whole_values(self.server, reply.clients)
        return [
            dataclasses.replace(part, numbers=part.numbers - _like(part, base[part.name]))
            if part.name in base
            else part
            for part in parts
        ]

    def filled(self, reply: Reply[Any], parts: Iterable[Part]) -> Reply[Any]:
        """The reply with the numbers of changed parts."""
        base = self.method.whole_values(self.server, reply.clients)
        numbers = {p.name: p.numbers + _like(p, base[p.name]) if p.name in base else p.numbers for p in parts}
        return with_numbers(reply, {p.name: p.filled(numbers[p.name]) for p in parts})

    def norms(self, reply: Reply[Any]) -> Float64:
        """``[clients]`` how large each client's change is (L2, over all its fields)."""
        own = getattr(reply.upload, "norms", None)
        if own is not None:
            users = self.users[reply.clients]
            owner = np.repeat(np.arange(len(users)), users)
            squares = np.bincount(owner, np.asarray(own(), np.float64) ** 2, minlength=len(users))
            return np.asarray(squares**0.5, np.float64)
        with np.errstate(over="ignore", invalid="ignore"):
            return norms_of(self.parts(reply), "l2", len(reply.clients))

    def scaled(self, reply: Reply[Any], factor: Float64) -> Reply[Any]:
        """The reply with each client's change times its factor; zero where the factor is zero, whatever stood there."""
        if (factor == 1).all():
            return reply
        own = getattr(reply.upload, "scaled", None)
        if own is not None:
            return dataclasses.replace(reply, upload=own(np.repeat(factor, self.users[reply.clients])))
        parts = []
        for part in self.parts(reply):
            each = factor.astype(part.numbers.dtype)[part.owners, None]
            with np.errstate(invalid="ignore"):
                parts.append(dataclasses.replace(part, numbers=np.where(each == 0, 0, part.numbers * each)))
        return self.filled(reply, parts)


def with_numbers(reply: Reply[Any], fields: dict[str, Any]) -> Reply[Any]:
    """The reply with some fields of its upload replaced."""
    return dataclasses.replace(reply, upload=with_fields(reply.upload, fields))


def weight_fields(upload: Upload) -> list[str]:
    """Fields by which a client says how much it counts: numbers of its interactions that cut no other field."""
    specs = dataclasses.fields(upload)  # type: ignore[arg-type]
    cutting = {spec.metadata.get("counted_by") for spec in specs}
    return [
        spec.name
        for spec in specs
        if spec.name not in cutting
        and getattr(spec.metadata.get("range"), "high", None) is Limit.OWNED
        and getattr(upload, spec.name) is not None
    ]


def _lengths(upload: Upload, users: Int64) -> Ragged:
    """Interactions of each user as far as the upload says; those of a client stand with its first user."""
    counts = np.zeros(int(users.sum()), np.int64)
    specs = {spec.name: spec for spec in dataclasses.fields(upload)}  # type: ignore[arg-type]
    for name, axis, content in fields_of(upload):
        counted_by = specs[name].metadata.get("counted_by")
        if axis is Axis.INTERACTION and content is not None and counted_by is not None:
            found = np.asarray(getattr(upload, counted_by), np.int64)
            if len(found) == len(counts):
                counts = found
            else:
                counts[offsets(users)[:-1][users > 0]] = found[users > 0]
            break
    return Ragged(offsets(counts), np.zeros(0, np.int32))


def _like(part: Part, base: NDArray[Any]) -> NDArray[Any]:
    return np.asarray(base).reshape(part.numbers.shape).astype(part.numbers.dtype, copy=False)
