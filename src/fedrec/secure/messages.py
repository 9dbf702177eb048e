"""The messages of a secure sum as bytes. What a member says is signed; what the server passes on stays signed.

A signed message is ``kind (1) | sender's place (4) | body | signature (64)``. The signature covers the plan's digest
too, which is not sent: a message from another run, round, cohort or attempt has a signature that does not fit.
Numbers are little endian. Every ``from_bytes`` refuses what is too short, too long or out of order.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from enum import IntEnum
from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from numpy.typing import NDArray

from fedrec.secure.failures import Refusal
from fedrec.secure.identity import SIGNATURE_BYTES, Directory
from fedrec.secure.masks import SECRET_BYTES, SEED_BYTES, TAG_BYTES
from fedrec.secure.plan import Plan
from fedrec.secure.shares import FINGERPRINT_BYTES

PLACE = struct.Struct("<I")
HEADER = struct.Struct("<BI")
KEY_BYTES = 32
SEALED = struct.Struct(f"<I{2 * SECRET_BYTES + TAG_BYTES}s")
"""A sealed pair of shares with the place of the other member."""
ENTRY_BYTES = SEALED.size
SIGNATURE = struct.Struct(f"{SIGNATURE_BYTES}s")
CONFIRMATION = struct.Struct(f"{HEADER.size + SIGNATURE_BYTES}s")


class Kind(IntEnum):
    """The steps in which members speak."""

    ADVERTISE = 0
    SHARE = 1
    INPUT = 2
    CONFIRM = 3
    UNMASK = 4


SHARERS = 16
"""Marks signatures under the list of those whose shares were passed on."""


def statement(plan: Plan, kind: int, place: int, body: bytes | memoryview) -> bytes:
    """The text that a signature covers."""
    return b"fedrec secure sum message|" + plan.digest + HEADER.pack(kind, place) + body


def sign(plan: Plan, kind: Kind, place: int, body: bytes, key: Ed25519PrivateKey) -> bytes:
    return HEADER.pack(kind, place) + body + key.sign(statement(plan, kind, place, body))


def check_signature(
    plan: Plan, kind: int, place: int, body: bytes | memoryview, signature: bytes, directory: Directory
) -> None:
    """Refuse what the member at ``place`` did not sign in this sum."""
    directory.verify(plan.members[place], signature, statement(plan, kind, place, body))


def sender_of(plan: Plan, kind: Kind, message: bytes) -> int:
    """Who says that it sent this, not yet proven."""
    if len(message) < HEADER.size + SIGNATURE_BYTES:
        raise Refusal("a message of a secure sum is too short")
    found, place = HEADER.unpack_from(message)
    if found != kind:
        raise Refusal(f"a message of step {found} came in the step {kind.name.lower()}")
    if place >= len(plan.members):
        raise Refusal(f"a message came from member {place}, there are {len(plan.members)}")
    return int(place)


def verified(plan: Plan, kind: Kind, message: bytes, directory: Directory) -> tuple[int, memoryview]:
    """Sender and body of a message whose signature fits this plan and step."""
    place = sender_of(plan, kind, message)
    body = body_of(message)
    check_signature(plan, kind, place, body, message[-SIGNATURE_BYTES:], directory)
    return place, body


def body_of(message: bytes) -> memoryview:
    """What stands between header and signature."""
    return memoryview(message)[HEADER.size : -SIGNATURE_BYTES]


def exactly(body: bytes | memoryview, size: int, what: str) -> None:
    if len(body) != size:
        raise Refusal(f"{what} has {len(body)} bytes instead of {size}")


@dataclass(frozen=True)
class Advertisement:
    """Public keys of one member for one attempt."""

    channel: bytes
    """X25519, for sealing shares."""
    masks: bytes
    """X25519, for pairwise masks."""

    SIZE = 2 * KEY_BYTES
    SIGNED = struct.Struct(f"{HEADER.size + SIZE + SIGNATURE_BYTES}s")

    def to_bytes(self) -> bytes:
        return self.channel + self.masks

    @staticmethod
    def from_bytes(body: bytes | memoryview) -> Advertisement:
        exactly(body, Advertisement.SIZE, "an advertisement")
        return Advertisement(bytes(body[:KEY_BYTES]), bytes(body[KEY_BYTES:]))


class Entry(NamedTuple):
    """What one member seals for one neighbour, with fingerprints by which the server knows the shares again."""

    receiver: int
    sealed: bytes
    seed_mark: bytes
    key_mark: bytes


ENTRY = struct.Struct(f"{SEALED.format}{FINGERPRINT_BYTES}s{FINGERPRINT_BYTES}s")


@dataclass(frozen=True)
class Shares:
    """The sealed shares of one member, share number i + 1 for the neighbour of entry i."""

    seed_mark: bytes
    """Fingerprint of the self-mask's secret."""
    entries: tuple[Entry, ...]

    def to_bytes(self) -> bytes:
        return self.seed_mark + b"".join(ENTRY.pack(*entry) for entry in self.entries)

    @staticmethod
    def from_bytes(body: bytes | memoryview) -> Shares:
        entries = tuple(Entry(*parts) for parts in unpacked(ENTRY, body[FINGERPRINT_BYTES:], "shares"))
        ascending([entry.receiver for entry in entries], "receivers of shares")
        return Shares(bytes(body[:FINGERPRINT_BYTES]), entries)


@dataclass(frozen=True)
class Unmasking:
    """What one member reveals at the end, about each neighbour either the one or the other, never both."""

    secret: bytes
    """The secret of its own self-mask."""
    alive: dict[int, bytes]
    """Shares of the self-mask secrets of neighbours that are in the sum."""
    gone: dict[int, tuple[bytes, bytes]]
    """For neighbours that are not: a share of their mask key's secret, and the seed of the mask with them."""

    ALIVE = struct.Struct(f"<I{SECRET_BYTES}s")
    GONE = struct.Struct(f"<I{SECRET_BYTES}s{SEED_BYTES}s")

    def to_bytes(self) -> bytes:
        alive = b"".join(self.ALIVE.pack(place, share) for place, share in sorted(self.alive.items()))
        gone = b"".join(self.GONE.pack(place, *both) for place, both in sorted(self.gone.items()))
        return self.secret + PLACE.pack(len(self.alive)) + alive + gone

    @staticmethod
    def from_bytes(body: bytes | memoryview) -> Unmasking:
        start = SECRET_BYTES + PLACE.size
        if len(body) < start:
            raise Refusal("an unmasking is too short")
        middle = start + PLACE.unpack_from(body, SECRET_BYTES)[0] * Unmasking.ALIVE.size
        if middle > len(body):
            raise Refusal("an unmasking is too short")
        alive = list(unpacked(Unmasking.ALIVE, body[start:middle], "shares of survivors"))
        gone = list(unpacked(Unmasking.GONE, body[middle:], "shares of dropouts"))
        ascending([place for place, _ in alive], "survivors of an unmasking")
        ascending([place for place, _, _ in gone], "dropouts of an unmasking")
        reveal = Unmasking(bytes(body[:SECRET_BYTES]), dict(alive), {place: (key, seed) for place, key, seed in gone})
        if reveal.alive.keys() & reveal.gone.keys():
            raise Refusal("an unmasking reveals both secrets of one member")
        return reveal


def unpacked(form: struct.Struct, body: bytes | memoryview, what: str) -> Iterator[tuple[Any, ...]]:
    """Equal parts of a list, each taken apart."""
    if len(body) % form.size:
        raise Refusal(f"{what} come as {len(body)} bytes, not in parts of {form.size}")
    return form.iter_unpack(body)


def ascending(places: Sequence[int], what: str) -> None:
    if any(left >= right for left, right in pairwise(places)):
        raise Refusal(f"{what} are not in ascending order, each once")


def list_bytes(members: int) -> int:
    """Bytes of a list of members."""
    return (members + 7) // 8


def bits_of(places: Sequence[int], members: int) -> bytes:
    """A list of members: one bit each."""
    flags = np.zeros(members, np.uint8)
    flags[list(places)] = 1
    return np.packbits(flags, bitorder="little").tobytes()


def places_of(bits: bytes, members: int) -> NDArray[np.bool_]:
    """Who is on a list ``[members]``."""
    exactly(bits, list_bytes(members), "a list of members")
    flags = np.unpackbits(np.frombuffer(bits, np.uint8), bitorder="little")
    if flags[members:].any():
        raise Refusal("a list names members that do not exist")
    return flags[:members].astype(bool)
