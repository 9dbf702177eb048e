"""The server's part in a secure sum: it receives messages, closes each step, and learns one total or nothing.

For each step: :meth:`Aggregator.receive` every message that comes (a refused one raises and changes nothing), then
:meth:`Aggregator.close` the step, which gives what is to be sent to each member that is still there. Members that
sent nothing have dropped out. After the last step :meth:`Aggregator.total` gives the sum.
"""

from __future__ import annotations

from collections.abc import Container
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from fedrec.secure.check import CHECKS, verify
from fedrec.secure.failures import Refusal, TooFew
from fedrec.secure.graph import fewest_in_a_row
from fedrec.secure.identity import SIGNATURE_BYTES, Directory
from fedrec.secure.masks import apply_masks
from fedrec.secure.messages import (
    HEADER,
    PLACE,
    SHARERS,
    Advertisement,
    Kind,
    Shares,
    Unmasking,
    bits_of,
    exactly,
    places_of,
    sender_of,
    statement,
    verified,
)
from fedrec.secure.plan import Plan
from fedrec.secure.ring import Integers, Words, centre, word_type
from fedrec.secure.shares import fingerprint
from fedrec.secure.unmasking import Received, masks_left


@dataclass(frozen=True)
class SecureSum:
    """The sum of the survivors' vectors, in whole steps; nothing else is known of them."""

    total: Integers
    survivors: tuple[str, ...]
    plan: Plan

    @property
    def fields(self) -> dict[str, NDArray[np.float64]]:
        """The sum in the fields' own units."""
        return self.plan.layout.decode(self.total)


class Aggregator:
    """The server in one attempt of one sum. ``workers`` processes put shares together where many are needed."""

    def __init__(self, plan: Plan, directory: Directory, workers: int = 1) -> None:
        self.plan = plan
        self.step: Kind | None = Kind.ADVERTISE
        self._directory = directory
        self._workers = workers
        self._got = Received()
        self._sharers = b""
        self._survivors = b""
        self._confirmations: dict[int, bytes] = {}
        self._words: Words = np.zeros(plan.layout.length, word_type(plan.layout.bits))
        self._checks = np.zeros(CHECKS, np.uint64)

    # receiving

    def receive(self, message: bytes) -> str:
        """Take in one message of the current step and say whose it was; refused ones raise and change nothing."""
        if self.step is None:
            raise Refusal("the secure sum is over")
        take = (self._advertise, self._share, self._input, self._confirm, self._unmask)[self.step]
        return self.plan.members[take(message)]

    def _advertise(self, message: bytes) -> int:
        place, body = verified(self.plan, Kind.ADVERTISE, message, self._directory)
        _once(place, self._got.keys)
        Advertisement.from_bytes(body)
        self._got.keys[place] = message
        return place

    def _share(self, message: bytes) -> int:
        place, body = verified(self.plan, Kind.SHARE, message, self._directory)
        _once(place, self._got.shares)
        shares = Shares.from_bytes(body)
        if [entry.receiver for entry in shares.entries] != self._present(
            place, self._got.keys
        ) or place not in self._got.keys:
            raise Refusal(f"shares of {self.plan.members[place]!r} are not for the neighbours whose keys it was sent")
        self._got.shares[place] = shares
        return place

    def _input(self, message: bytes) -> int:
        place, body = verified(self.plan, Kind.INPUT, message, self._directory)
        _once(place, self._got.inputs)
        if place not in self._got.shares:
            raise Refusal(f"a masked vector of {self.plan.members[place]!r} came, but no shares")
        layout = self.plan.layout
        exactly(body, self.plan.masked_bytes + SIGNATURE_BYTES, "a masked vector with a signature")
        text = statement(self.plan, SHARERS, place, self._sharers)
        agreed = bytes(body[-SIGNATURE_BYTES:])
        self._directory.verify(self.plan.members[place], agreed, text)
        words = np.frombuffer(body, word_type(layout.bits), count=layout.length)
        self._words += words
        self._checks += np.frombuffer(body, "<u8", count=CHECKS, offset=words.nbytes)
        self._got.inputs[place] = agreed
        return place

    def _confirm(self, message: bytes) -> int:
        place = sender_of(self.plan, Kind.CONFIRM, message)
        exactly(message, HEADER.size + SIGNATURE_BYTES, "a confirmation")
        _once(place, self._confirmations)
        if place not in self._got.inputs:
            raise Refusal(f"a confirmation of {self.plan.members[place]!r} came, which is not in the sum")
        text = statement(self.plan, Kind.CONFIRM, place, self._survivors)
        self._directory.verify(self.plan.members[place], message[HEADER.size :], text)
        self._confirmations[place] = message
        return place

    def _unmask(self, message: bytes) -> int:
        place, body = verified(self.plan, Kind.UNMASK, message, self._directory)
        _once(place, self._got.unmaskings)
        if place not in self._confirmations:
            raise Refusal(f"an unmasking of {self.plan.members[place]!r} came, but no confirmation")
        reveal = Unmasking.from_bytes(body)
        alive, gone = self._split(place)
        if sorted(reveal.alive) != alive or sorted(reveal.gone) != gone:
            raise Refusal(f"{self.plan.members[place]!r} reveals shares of other members than it was asked for")
        mark = fingerprint(reveal.secret, self.plan.digest, "secret", place, 0)
        if mark != self._got.shares[place].seed_mark:
            raise Refusal(f"{self.plan.members[place]!r} reveals another secret than it shared")
        self._got.unmaskings[place] = reveal
        return place

    # closing a step

    def close(self) -> dict[str, bytes]:
        """End the current step: what goes to each member that answered in it. :class:`TooFew` ends the attempt."""
        make = {
            Kind.ADVERTISE: self._pass_keys,
            Kind.SHARE: self._pass_shares,
            Kind.INPUT: self._pass_survivors,
            Kind.CONFIRM: self._pass_confirmations,
        }
        if self.step is None or self.step not in make:
            raise Refusal("no step is open that could be closed")
        step, self.step = self.step, None
        outgoing = make[step]()
        self.step = Kind(step + 1)
        return {self.plan.members[place]: content for place, content in outgoing.items()}

    def _pass_keys(self) -> dict[int, bytes]:
        self._enough(len(self._got.keys), "keys")
        return {
            u: b"".join(self._got.keys[v] for v in self._present(u, self._got.keys)) for u in sorted(self._got.keys)
        }

    def _pass_shares(self) -> dict[int, bytes]:
        self._enough(len(self._got.shares), "shares")
        inbox: dict[int, list[bytes]] = {place: [] for place in sorted(self._got.shares)}
        for sender in sorted(self._got.shares):
            for entry in self._got.shares[sender].entries:
                if entry.receiver in inbox:
                    inbox[entry.receiver].append(PLACE.pack(sender) + entry.sealed)
        self._sharers = bits_of(list(inbox), len(self.plan.members))
        return {place: self._sharers + b"".join(parts) for place, parts in inbox.items()}

    def _pass_survivors(self) -> dict[int, bytes]:
        self._enough(len(self._got.inputs), "vectors")
        plan, rules = self.plan, self.plan.rules
        self._survivors = bits_of(sorted(self._got.inputs), len(plan.members))
        alive = places_of(self._survivors, len(plan.members))
        if fewest_in_a_row(plan.circle, rules.neighbours, alive) < rules.window:
            raise TooFew("so many in a row on the circle are gone that the rest might fall apart; repeat")
        return {
            u: self._survivors + b"".join(self._got.inputs[v] for v in self._present(u, self._got.inputs))
            for u in sorted(self._got.inputs)
        }

    def _pass_confirmations(self) -> dict[int, bytes]:
        signed = [self._confirmations[v] for v in self.plan.committee.tolist() if v in self._confirmations]
        quorum = self.plan.rules.quorum
        if len(signed) < quorum:
            raise TooFew(f"{len(signed)} of the committee signed the list of survivors, {quorum} are needed; repeat")
        return dict.fromkeys(sorted(self._confirmations), b"".join(signed))

    def _present(self, place: int, among: dict[int, bytes]) -> list[int]:
        """Neighbours of a member that are among some."""
        return [v for v in self.plan.neighbours_of(place) if v in among]

    def _split(self, place: int) -> tuple[list[int], list[int]]:
        """Neighbours of a member that sent it shares: those in the sum, and those that are not."""
        sent = [v for v in self.plan.neighbours_of(place) if v in self._got.shares]
        return [v for v in sent if v in self._got.inputs], [v for v in sent if v not in self._got.inputs]

    def _enough(self, count: int, what: str) -> None:
        if count < self.plan.rules.least_survivors:
            raise TooFew(
                f"{what} of {count} members, {self.plan.rules.least_survivors} are needed; repeat with fresh keys"
            )

    # the sum

    def total(self) -> SecureSum:
        """Take all masks off. Fails closed: too few shares or a total that does not fit its check give no sum."""
        if self.step is not Kind.UNMASK:
            raise Refusal("there is no sum before the step unmask")
        self.step = None
        plan, layout = self.plan, self.plan.layout
        left = [(-sign, seed) for sign, seed in masks_left(plan, self._got, self._workers)]
        apply_masks(self._words, self._checks, left, layout.bits)
        total = centre(self._words, layout.bits)
        verify(total, self._checks, len(self._got.inputs), plan.digest)
        return SecureSum(total, tuple(plan.members[place] for place in sorted(self._got.inputs)), plan)


def _once(place: int, seen: Container[int]) -> None:
    if place in seen:
        raise Refusal(f"a second message of member {place} in one step")
