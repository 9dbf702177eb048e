"""The server's part in a secure sum: it receives messages, closes each step, and learns one total or nothing.

For each step: :meth:`Aggregator.receive` every message that comes (a refused one raises and changes nothing), then
:meth:`Aggregator.close` the step, which gives what is to be sent to each member that is still there. Members that
sent nothing have dropped out. After the last step :meth:`Aggregator.total` gives the sum.
"""

from __future__ import annotations

from collections.abc import Container
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fedrec.secure.check import CHECKS, verify
from fedrec.secure.failures import Refusal, TooFew
from fedrec.secure.graph import fewest_in_a_row
from fedrec.secure.identity import SIGNATURE_BYTES, Directory
from fedrec.secure.masks import apply_masks
from fedrec.secure.messages import (
    CONFIRMATION,
    HEADER,
    SEALED,
    SHARERS,
    Advertisement,
    Kind,
    Shares,
    Unmasking,
    bits_of,
    body_of,
    check_signature,
    exactly,
    places_of,
    sender_of,
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
        if self.step is Kind.CONFIRM:  # what it signs is not in it: the list of survivors
            place = sender_of(self.plan, Kind.CONFIRM, message)
            exactly(message, CONFIRMATION.size, "a confirmation")
        else:
            place, _ = verified(self.plan, self.step, message, self._directory)
        got, name = self._got, self.plan.members[place]
        kept: tuple[dict[int, Any], ...] = (got.keys, got.shares, got.inputs, self._confirmations, got.unmaskings)
        if place in kept[self.step]:
            raise Refusal(f"a second message of member {place} in one step")
        take = (self._advertise, self._share, self._input, self._confirm, self._unmask)[self.step]
        kept[self.step][place] = take(place, name, message)
        return name

    # of a message whose sender is known: what of it is kept

    def _advertise(self, place: int, name: str, message: bytes) -> bytes:
        Advertisement.from_bytes(body_of(message))
        return message

    def _share(self, place: int, name: str, message: bytes) -> Shares:
        shares = Shares.from_bytes(body_of(message))
        asked = self._present(place, self._got.keys)
        if place not in self._got.keys or [entry.receiver for entry in shares.entries] != asked:
            raise Refusal(f"shares of {name!r} are not for the neighbours whose keys it was sent")
        return shares

    def _input(self, place: int, name: str, message: bytes) -> bytes:
        if place not in self._got.shares:
            raise Refusal(f"a masked vector of {name!r} came, but no shares")
        body, layout = body_of(message), self.plan.layout
        exactly(body, self.plan.masked_bytes + SIGNATURE_BYTES, "a masked vector with a signature")
        agreed = bytes(body[-SIGNATURE_BYTES:])
        check_signature(self.plan, SHARERS, place, self._sharers, agreed, self._directory)
        words = np.frombuffer(body, word_type(layout.bits), count=layout.length)
        self._words += words
        self._checks += np.frombuffer(body, "<u8", count=CHECKS, offset=words.nbytes)
        return agreed

    def _confirm(self, place: int, name: str, message: bytes) -> bytes:
        if place not in self._got.inputs:
            raise Refusal(f"a confirmation of {name!r} came, which is not in the sum")
        check_signature(self.plan, Kind.CONFIRM, place, self._survivors, message[HEADER.size :], self._directory)
        return message

    def _unmask(self, place: int, name: str, message: bytes) -> Unmasking:
        if place not in self._confirmations:
            raise Refusal(f"an unmasking of {name!r} came, but no confirmation")
        reveal = Unmasking.from_bytes(body_of(message))
        sent = self._present(place, self._got.shares)  # neighbours that sent it shares: in the sum, or gone
        alive = [v for v in sent if v in self._got.inputs]
        if sorted(reveal.alive) != alive or sorted(reveal.gone) != [v for v in sent if v not in self._got.inputs]:
            raise Refusal(f"{name!r} reveals shares of other members than it was asked for")
        if fingerprint(reveal.secret, self.plan.digest, "secret", place, 0) != self._got.shares[place].seed_mark:
            raise Refusal(f"{name!r} reveals another secret than it shared")
        return reveal

    # closing a step

    def close(self) -> dict[str, bytes]:
        """End the current step: what goes to each member that answered in it. :class:`TooFew` ends the attempt."""
        if self.step is None or self.step is Kind.UNMASK:
            raise Refusal("no step is open that could be closed")
        step, self.step = self.step, None
        outgoing = (self._pass_keys, self._pass_shares, self._pass_survivors, self._pass_confirmations)[step]()
        self.step = Kind(step + 1)
        return {self.plan.members[place]: content for place, content in outgoing.items()}

    def _pass_keys(self) -> dict[int, bytes]:
        self._enough(len(self._got.keys), "keys")
        return self._of_neighbours(self._got.keys)

    def _pass_shares(self) -> dict[int, bytes]:
        self._enough(len(self._got.shares), "shares")
        inbox: dict[int, list[bytes]] = {place: [] for place in sorted(self._got.shares)}
        for sender in sorted(self._got.shares):
            for entry in self._got.shares[sender].entries:
                if entry.receiver in inbox:
                    inbox[entry.receiver].append(SEALED.pack(sender, entry.sealed))
        self._sharers = bits_of(list(inbox), len(self.plan.members))
        return {place: self._sharers + b"".join(parts) for place, parts in inbox.items()}

    def _pass_survivors(self) -> dict[int, bytes]:
        self._enough(len(self._got.inputs), "vectors")
        plan, rules = self.plan, self.plan.rules
        self._survivors = bits_of(sorted(self._got.inputs), len(plan.members))
        alive = places_of(self._survivors, len(plan.members))
        if fewest_in_a_row(plan.circle, rules.neighbours, alive) < rules.window:
            raise TooFew("so many in a row on the circle are gone that the rest might fall apart; repeat")
        return {u: self._survivors + signed for u, signed in self._of_neighbours(self._got.inputs).items()}

    def _pass_confirmations(self) -> dict[int, bytes]:
        signed = [self._confirmations[v] for v in self.plan.committee.tolist() if v in self._confirmations]
        quorum = self.plan.rules.quorum
        if len(signed) < quorum:
            raise TooFew(f"{len(signed)} of the committee signed the list of survivors, {quorum} are needed; repeat")
        return dict.fromkeys(sorted(self._confirmations), b"".join(signed))

    def _of_neighbours(self, found: dict[int, bytes]) -> dict[int, bytes]:
        """For each that sent something, what its neighbours sent."""
        return {u: b"".join(found[v] for v in self._present(u, found)) for u in sorted(found)}

    def _present(self, place: int, among: Container[int]) -> list[int]:
        """Neighbours of a member that are among some."""
        return [v for v in self.plan.neighbours_of(place) if v in among]

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
