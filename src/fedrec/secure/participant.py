"""A member's part in a secure sum: five steps, each taken once, bytes in and bytes out, no input or output.

A refusal ends the part: the object answers nothing more, so that a server cannot try until something fits. A part is
not kept on disk: a member that restarts has dropped out of this attempt.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field

import numpy as np
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from cryptography.hazmat.primitives.asymmetric.x25519 import X25519PrivateKey

from fedrec.secure.check import check_words
from fedrec.secure.failures import Refusal, Signed, TooFew
from fedrec.secure.graph import fewest_in_a_row
from fedrec.secure.identity import Directory
from fedrec.secure.layout import Layout
from fedrec.secure.masks import SECRET_BYTES, agree, apply_masks, mask_key, pair_seed, seal, self_seed, sign_of, unseal
from fedrec.secure.messages import (
    CONFIRMATION,
    HEADER,
    SEALED,
    SHARERS,
    SIGNATURE,
    Advertisement,
    Entry,
    Kind,
    Shares,
    Unmasking,
    check_signature,
    list_bytes,
    places_of,
    sender_of,
    sign,
    statement,
    unpacked,
    verified,
)
from fedrec.secure.plan import Plan
from fedrec.secure.policy import Policy
from fedrec.secure.randomness import Entropy
from fedrec.secure.ring import Integers, wrap
from fedrec.secure.shares import fingerprint, split


@dataclass
class Member:
    """Who takes part, over many sums: a name, a long-term key, the others' keys, a policy."""

    name: str
    key: Ed25519PrivateKey
    directory: Directory
    policy: Policy = field(default_factory=Policy)
    entropy: Entropy = os.urandom
    last: dict[str, tuple[int, int]] = field(default_factory=dict)
    """The newest (round, attempt) of each run; whoever keeps a member over restarts keeps this and the next too."""
    confirmed: dict[str, int] = field(default_factory=dict)
    """The newest round of each run for which this member signed who is in the sum: it is in no other sum of it."""

    def join(self, plan: Plan, layout: Layout | None = None) -> Participant:
        """Take part in this sum; refused where the policy says so or where the round has been seen already.

        ``layout`` is what this member agreed to sum (fields, bounds, noise): a plan for anything else is refused.
        """
        if self.name not in plan.place:
            raise Refusal(f"{self.name!r} is not a member of this cohort")
        if layout is not None and plan.layout != layout:
            raise Refusal("the plan sums other fields, bounds or noise than this participant agreed to")
        self.policy.check(plan, self.directory)
        if plan.round <= self.confirmed.get(plan.run, -1):
            raise Signed(f"{self.name!r} has signed a sum of round {plan.round} of run {plan.run!r} already")
        when = (plan.round, plan.attempt)
        if when <= self.last.get(plan.run, (-1, -1)):
            raise Refusal(f"round {plan.round}, attempt {plan.attempt} of run {plan.run!r} has been asked for before")
        self.last[plan.run] = when
        return Participant(self, plan)


class Participant:
    """One member in one attempt of one sum."""

    def __init__(self, member: Member, plan: Plan) -> None:
        self.plan = plan
        self._member = member
        self.place = plan.place[member.name]
        self._next: Kind | None = Kind.ADVERTISE
        # never shared: the key that seals; shared: two secrets of which at most one will be revealed
        self._channel = X25519PrivateKey.from_private_bytes(member.entropy(32))
        self._seed_secret = member.entropy(SECRET_BYTES)
        self._key_secret = member.entropy(SECRET_BYTES)
        self._masks = mask_key(self._key_secret, plan.digest, self.place)
        self._keys: dict[int, Advertisement] = {}
        self._channels: dict[int, bytes] = {}
        self._held: dict[int, tuple[bytes, bytes]] = {}
        self._pairs: dict[int, bytes] = {}
        self._sharers = b""
        self._survivors = b""

    @contextmanager
    def _step(self, kind: Kind) -> Iterator[None]:
        """Each step once, in order; whatever goes wrong inside ends the part."""
        if self._next is not kind:
            raise Refusal(f"{self._member.name!r} is asked for step {kind.name.lower()} out of order or again")
        self._next = None
        yield
        self._next = None if kind is Kind.UNMASK else Kind(kind + 1)

    def awaits(self, kind: Kind) -> bool:
        """Whether this step is the next one."""
        return self._next is kind

    def _signed(self, kind: Kind, body: bytes) -> bytes:
        return sign(self.plan, kind, self.place, body, self._member.key)

    def advertise(self) -> bytes:
        """Step 0: fresh public keys, signed with the long-term key."""
        with self._step(Kind.ADVERTISE):
            keys = Advertisement(
                self._channel.public_key().public_bytes_raw(), self._masks.public_key().public_bytes_raw()
            )
            return self._signed(Kind.ADVERTISE, keys.to_bytes())

    def share(self, advertisements: bytes) -> bytes:
        """Step 1: the neighbours' keys come in; shares of both secrets go out, sealed for each neighbour."""
        with self._step(Kind.SHARE):
            plan = self.plan
            expected = set(plan.neighbours_of(self.place))
            for (message,) in unpacked(Advertisement.SIGNED, advertisements, "advertisements"):
                place, body = verified(plan, Kind.ADVERTISE, message, self._member.directory)
                if place not in expected:
                    raise Refusal(f"keys of member {place} came, who is no neighbour or came twice")
                expected.remove(place)
                self._keys[place] = Advertisement.from_bytes(body)
            present = sorted(self._keys)
            self._enough(len(present), "advertised keys")
            shares = split(self._seed_secret + self._key_secret, plan.rules.threshold, len(present))
            entries = []
            for number, (place, both) in enumerate(zip(present, shares, strict=True), start=1):
                channel = self._channels[place] = agree(self._channel, self._keys[place].channel)
                seed_mark = fingerprint(both[:SECRET_BYTES], plan.digest, "seed", self.place, number)
                key_mark = fingerprint(both[SECRET_BYTES:], plan.digest, "key", self.place, number)
                entries.append(Entry(place, seal(channel, plan.digest, self.place, place, both), seed_mark, key_mark))
            mark = fingerprint(self._seed_secret, plan.digest, "secret", self.place, 0)
            return self._signed(Kind.SHARE, Shares(mark, tuple(entries)).to_bytes())

    def mask(self, sealed: bytes, values: Integers) -> bytes:
        """Step 2: the neighbours' shares come in; the vector goes out under the own mask and one for each of them."""
        with self._step(Kind.INPUT):
            plan, layout = self.plan, self.plan.layout
            if values.shape != (layout.length,) or values.dtype != np.int64:
                raise Refusal(f"a vector of {layout.length} 64-bit whole numbers is to be summed")
            size = list_bytes(len(plan.members))
            self._sharers = sealed[:size]
            sharers = places_of(self._sharers, len(plan.members))
            parts = list(unpacked(SEALED, sealed[size:], "sealed shares"))
            expected = [v for v in plan.neighbours_of(self.place) if sharers[v]]
            if not sharers[self.place] or [place for place, _ in parts] != expected:
                raise Refusal("the shares that came are not those of the neighbours on the list of sharers")
            for place, part in parts:
                if place not in self._keys:
                    raise Refusal(f"shares came from member {place}, whose keys did not")
                both = unseal(self._channels[place], plan.digest, place, self.place, part)
                self._held[place] = both[:SECRET_BYTES], both[SECRET_BYTES:]
                self._pairs[place] = pair_seed(self._masks, self._keys[place].masks, plan.digest, self.place, place)
            self._enough(len(self._held), "shares")
            words, checks = wrap(values, layout.bits), check_words(values, plan.digest)
            own = self_seed(self._seed_secret, plan.digest, self.place)
            masks = [(1, own)] + [(sign_of(self.place, place), seed) for place, seed in self._pairs.items()]
            apply_masks(words, checks, masks, layout.bits)
            agreed = self._member.key.sign(statement(plan, SHARERS, self.place, self._sharers))
            return self._signed(Kind.INPUT, words.tobytes() + checks.tobytes() + agreed)

    def confirm(self, survivors: bytes) -> bytes:
        """Step 3: the list of those in the sum comes in; a signature under this one list goes out.

        With it come the signatures of the neighbours in it under the list of sharers: that they masked with the same.
        """
        with self._step(Kind.CONFIRM):
            plan = self.plan
            size = list_bytes(len(plan.members))
            self._survivors = survivors[:size]
            alive = places_of(self._survivors, len(plan.members))
            if not alive[self.place]:
                raise Refusal("the list of survivors leaves this member out")
            if (alive & ~places_of(self._sharers, len(plan.members))).any():
                raise Refusal("the list of survivors names members that were not on the list of sharers")
            least = max(plan.rules.least_survivors, self._member.policy.least_survivors)
            if alive.sum() < least:
                raise TooFew(f"{alive.sum()} contributions are left, {least} are needed")
            left = plan.contributing(alive)
            if 0 < left < self._member.policy.least_survivors:
                raise TooFew(
                    f"{left} of those are left that have trained, {self._member.policy.least_survivors} are needed"
                )
            if fewest_in_a_row(plan.circle, plan.rules.neighbours, alive) < plan.rules.window:
                raise TooFew("so many in a row on the circle are gone that the rest might fall apart")
            signatures = list(unpacked(SIGNATURE, survivors[size:], "signatures"))
            near = [place for place in self._held if alive[place]]
            if len(signatures) != len(near):
                raise Refusal("not every neighbour in the sum has signed the list of sharers")
            for place, (signature,) in zip(near, signatures, strict=True):
                check_signature(plan, SHARERS, place, self._sharers, signature, self._member.directory)
            # enough of these signatures open the sum without this member: from here on it is in no other of that round
            self._member.confirmed[plan.run] = plan.round
            own = self._member.key.sign(statement(plan, Kind.CONFIRM, self.place, self._survivors))
            return HEADER.pack(Kind.CONFIRM, self.place) + own

    def unmask(self, confirmations: bytes) -> bytes:
        """Step 4: the committee's signatures under the same list come in; for each neighbour one secret goes out."""
        with self._step(Kind.UNMASK):
            plan = self.plan
            alive = places_of(self._survivors, len(plan.members))
            waiting = {place for place in plan.committee.tolist() if alive[place]}
            agreed = 0
            for (message,) in unpacked(CONFIRMATION, confirmations, "confirmations"):
                place = sender_of(plan, Kind.CONFIRM, message)
                if place not in waiting:
                    raise Refusal(f"a signature of member {place} came, who is not of the committee or came twice")
                waiting.remove(place)
                check_signature(
                    plan, Kind.CONFIRM, place, self._survivors, message[HEADER.size :], self._member.directory
                )
                agreed += 1
            if agreed < plan.rules.quorum:
                raise TooFew(f"{agreed} of the committee signed the list of survivors, {plan.rules.quorum} are needed")
            reveal = Unmasking(
                self._seed_secret,
                {place: seed for place, (seed, _) in self._held.items() if alive[place]},
                {place: (key, self._pairs[place]) for place, (_, key) in self._held.items() if not alive[place]},
            )
            self._held, self._pairs, self._seed_secret, self._key_secret = {}, {}, b"", b""
            return self._signed(Kind.UNMASK, reveal.to_bytes())

    def _enough(self, count: int, what: str) -> None:
        if count < self.plan.rules.threshold:
            raise TooFew(
                f"{what} of {count} neighbours, {self.plan.rules.threshold} are needed; repeat with fresh keys"
            )
