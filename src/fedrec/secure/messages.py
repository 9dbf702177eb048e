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
SEALED_BYTES = 2 * SECRET_BYTES + TAG_BYTES
ENTRY_BYTES = PLACE.size + SEALED_BYTES
"""A sealed pair of shares with the place of the other member."""


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
    """A signed message."""
    return HEADER.pack(kind, place) + body + key.sign(statement(plan, kind, place, body))


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
    body = memoryview(message)[HEADER.size : -SIGNATURE_BYTES]
    directory.verify(plan.members[place], message[-SIGNATURE_BYTES:], statement(plan, kind, place, body))
    return place, body


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

    def to_bytes(self) -> bytes:
        return self.channel + self.masks

    @staticmethod
    def from_bytes(body: bytes | memoryview) -> Advertisement:
        exactly(body, Advertisement.SIZE, "an advertisement")
        return Advertisement(bytes(body[:KEY_BYTES]), bytes(body[KEY_BYTES:]))


@dataclass(frozen=True)
class Entry:
    """What one member seals for one neighbour, with fingerprints by which the server knows the shares again."""

    receiver: int
    sealed: bytes
    seed_mark: bytes
    key_mark: bytes

    SIZE = ENTRY_BYTES + 2 * FINGERPRINT_BYTES


@dataclass(frozen=True)
class Shares:
    """The sealed shares of one member, share number i + 1 for the neighbour of entry i."""

    seed_mark: bytes
    """Fingerprint of the self-mask's secret."""
    entries: tuple[Entry, ...]

    def to_bytes(self) -> bytes:
        return self.seed_mark + b"".join(
            PLACE.pack(e.receiver) + e.sealed + e.seed_mark + e.key_mark for e in self.entries
        )

    @staticmethod
    def from_bytes(body: bytes | memoryview) -> Shares:
        rest = body[FINGERPRINT_BYTES:]
        entries = []
        for part in pieces(rest, Entry.SIZE, "shares"):
            mark = len(part) - 2 * FINGERPRINT_BYTES
            entries.append(
                Entry(
                    PLACE.unpack_from(part)[0],
                    bytes(part[PLACE.size : mark]),
                    bytes(part[mark : mark + FINGERPRINT_BYTES]),
                    bytes(part[mark + FINGERPRINT_BYTES :]),
                )
            )
        ascending([entry.receiver for entry in entries], "receivers of shares")
        return Shares(bytes(body[:FINGERPRINT_BYTES]), tuple(entries))


@dataclass(frozen=True)
class Unmasking:
    """What one member reveals at the end, about each neighbour either the one or the other, never both."""

    secret: bytes
    """The secret of its own self-mask."""
    alive: dict[int, bytes]
    """Shares of the self-mask secrets of neighbours that are in the sum."""
    gone: dict[int, tuple[bytes, bytes]]
    """For neighbours that are not: a share of their mask key's secret, and the seed of the mask with them."""

    ALIVE = PLACE.size + SECRET_BYTES
    GONE = PLACE.size + SECRET_BYTES + SEED_BYTES

    def to_bytes(self) -> bytes:
        alive = b"".join(PLACE.pack(place) + share for place, share in sorted(self.alive.items()))
        gone = b"".join(PLACE.pack(place) + share + seed for place, (share, seed) in sorted(self.gone.items()))
        return self.secret + PLACE.pack(len(self.alive)) + alive + gone

    @staticmethod
    def from_bytes(body: bytes | memoryview) -> Unmasking:
        start = SECRET_BYTES + PLACE.size
        if len(body) < start:
            raise Refusal("an unmasking is too short")
        middle = start + PLACE.unpack_from(body, SECRET_BYTES)[0] * Unmasking.ALIVE
        if middle > len(body):
            raise Refusal("an unmasking is too short")
        alive = list(pieces(body[start:middle], Unmasking.ALIVE, "shares of survivors"))
        gone = list(pieces(body[middle:], Unmasking.GONE, "shares of dropouts"))
        living = [PLACE.unpack_from(part)[0] for part in alive]
        dead = [PLACE.unpack_from(part)[0] for part in gone]
        ascending(living, "survivors of an unmasking")
        ascending(dead, "dropouts of an unmasking")
        if set(living) & set(dead):
            raise Refusal("an unmasking reveals both secrets of one member")
        cut = PLACE.size + SECRET_BYTES
        return Unmasking(
            bytes(body[:SECRET_BYTES]),
            {place: bytes(part[PLACE.size :]) for place, part in zip(living, alive, strict=True)},
            {place: (bytes(p[PLACE.size : cut]), bytes(p[cut:])) for place, p in zip(dead, gone, strict=True)},
        )


def pieces(body: bytes | memoryview, size: int, what: str) -> Iterator[bytes | memoryview]:
    """Equal parts of a list."""
    if len(body) % size:
        raise Refusal(f"{what} come as {len(body)} bytes, not in parts of {size}")
    return (body[first : first + size] for first in range(0, len(body), size))


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
