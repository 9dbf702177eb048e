"""A cohort in one process: the same sums, dropouts, refusals and bytes, at three levels of work.

* ``protocol``: every participant and the server run the protocol as deployed; nothing is left out.
* ``masks``: real keys, real masks on every vector, taken off again by the server; signatures are not made and shares
  are not put together (their bytes are counted). Sharing in plain Python is most of the time of ``protocol``.
* ``sums``: whole numbers are added; bytes and dropouts as in the others.

The sum is the same to the bit, and so are the bytes.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from fedrec.secure.aggregator import Aggregator, SecureSum
from fedrec.secure.check import CHECKS, check_words, verify
from fedrec.secure.course import Course, Dropouts, Traffic
from fedrec.secure.failures import Refusal
from fedrec.secure.identity import Directory, new_key, public_bytes
from fedrec.secure.masks import SECRET_BYTES, apply_masks, mask_key, pair_seed, self_seed, sign_of
from fedrec.secure.messages import Kind
from fedrec.secure.participant import Member, Participant
from fedrec.secure.plan import Plan
from fedrec.secure.policy import Policy
from fedrec.secure.randomness import Stream
from fedrec.secure.ring import Integers, Words, centre, word_type, wrap

Level = Literal["protocol", "masks", "sums"]
Clock = Callable[[], float]


@dataclass(frozen=True)
class Simulated:
    """What one cohort gave and cost."""

    sum: SecureSum
    course: Course
    traffic: Traffic
    seconds: dict[str, float]
    """``clients`` (all together) and ``server``."""
    received: int
    """Bytes that the server received."""
    sent: int
    """Bytes that the server sent."""


class Cohort:
    """One attempt of one secure sum: :meth:`add` the vector of each of the ``contributors``, then :meth:`finish`.

    Vectors are folded as they come. :class:`fedrec.secure.failures.TooFew` is raised as early as the dropouts allow;
    a new attempt is a new cohort with ``attempt + 1`` in its plan.
    """

    def __init__(
        self,
        plan: Plan,
        dropouts: Dropouts | None = None,
        *,
        seed: int = 0,
        level: Level = "sums",
        workers: int = 1,
        clock: Clock = time.perf_counter,
    ) -> None:
        self.plan = plan
        self.course = Course.of(plan, dropouts or {})
        self.contributors = self.course.survivors
        self._waiting = set(self.contributors.tolist())
        levels: dict[Level, type[Sums]] = {"protocol": Protocol, "masks": Masks, "sums": Sums}
        self._work = levels[level](self.course, seed, workers, clock)

    def add(self, place: int, values: Integers) -> None:
        """The whole numbers of the member at ``place``, noise included."""
        if place not in self._waiting:
            raise Refusal(f"member {place} is not in this sum, or is in it already")
        self._waiting.remove(place)
        self._work.add(place, values)

    def finish(self) -> Simulated:
        """The sum, once every contributor has been added."""
        if self._waiting:
            raise Refusal(f"{len(self._waiting)} contributors have not been added")
        total = self._work.total()
        survivors = tuple(self.plan.members[place] for place in self.contributors)
        traffic = self.course.traffic()
        received, sent = int(traffic.upload.sum()), int(traffic.download.sum())
        result = SecureSum(total, survivors, self.plan)
        return Simulated(result, self.course, traffic, dict(self._work.seconds), received, sent)


class Sums:
    """The sum alone, modulo the ring; the other levels come to the same by more work."""

    def __init__(self, course: Course, seed: int, workers: int = 1, clock: Clock = time.perf_counter) -> None:
        self.course, self.plan, self.clock = course, course.plan, clock
        self.seconds = {"clients": 0.0, "server": 0.0}
        self._words: Words = np.zeros(self.plan.layout.length, word_type(self.plan.layout.bits))

    def add(self, place: int, values: Integers) -> None:
        self._words += wrap(values, self.plan.layout.bits)

    def total(self) -> Integers:
        return centre(self._words, self.plan.layout.bits)

    @contextmanager
    def timed(self, who: str) -> Iterator[None]:
        """Count the block as somebody's time."""
        since = self.clock()
        yield
        self.seconds[who] += self.clock() - since


class Masks(Sums):
    """Real keys and masks."""

    def __init__(self, course: Course, seed: int, workers: int = 1, clock: Clock = time.perf_counter) -> None:
        super().__init__(course, seed, workers, clock)
        self._checks = np.zeros(CHECKS, np.uint64)
        plan = self.plan
        with self.timed("clients"):
            secrets = Stream.named(seed, "secure secrets", plan.digest.hex())
            self._secrets = [secrets.bytes(SECRET_BYTES) for _ in plan.members]
            self._keys = [
                mask_key(secrets.bytes(SECRET_BYTES), plan.digest, place) for place in range(len(plan.members))
            ]
            self._public = [key.public_key().public_bytes_raw() for key in self._keys]
            self._pairs: dict[tuple[int, int], bytes] = {}  # both sides agree on the same, so it is computed once

    def _own(self, place: int) -> bytes:
        return self_seed(self._secrets[place], self.plan.digest, place)

    def _masks_of(self, among: NDArray[np.bool_], place: int) -> list[tuple[int, bytes]]:
        """Sign and seed of a member's masks with some of its neighbours."""
        found = []
        for other in self.plan.neighbours_of(place):
            if among[other]:
                pair = min(place, other), max(place, other)
                if pair not in self._pairs:
                    args = self._keys[place], self._public[other], self.plan.digest, place, other
                    self._pairs[pair] = pair_seed(*args)
                found.append((sign_of(place, other), self._pairs[pair]))
        return found

    def masked(self, place: int, values: Integers) -> tuple[Words, NDArray[np.uint64]]:
        """What a member sends: its vector and the check words, masked with all that sent it shares."""
        words, checks = wrap(values, self.plan.layout.bits), check_words(values, self.plan.digest)
        masks = [(1, self._own(place)), *self._masks_of(self.course.spoke[Kind.SHARE], place)]
        apply_masks(words, checks, masks, self.plan.layout.bits)
        return words, checks

    def add(self, place: int, values: Integers) -> None:
        with self.timed("clients"):
            words, checks = self.masked(place, values)
        with self.timed("server"):
            self._words += words
            self._checks += checks

    def total(self) -> Integers:
        _, shared, summed, _, _ = self.course.spoke
        survivors = self.course.survivors.tolist()
        with self.timed("server"):
            masks = [(-1, self._own(place)) for place in survivors]
            for gone in np.flatnonzero(shared & ~summed).tolist():
                # what the gone member would have added takes away what its neighbours did
                masks += self._masks_of(summed, gone)
            apply_masks(self._words, self._checks, masks, self.plan.layout.bits)
            total = super().total()
            verify(total, self._checks, len(survivors), self.plan.digest)
        return total


class Protocol(Sums):
    """Every step of every party."""

    def __init__(self, course: Course, seed: int, workers: int, clock: Clock) -> None:
        super().__init__(course, seed, workers, clock)
        plan = self.plan
        entropy = Stream.named(seed, "secure entropy", plan.digest.hex()).bytes
        keys = {name: new_key(entropy) for name in plan.members}
        directory = Directory({name: public_bytes(key) for name, key in keys.items()})
        # the plan was made by whoever simulates; a policy that refuses it is the business of deployments
        policy = Policy(server="curious", colluding=0.0, security_bits=0, least_members=3, least_survivors=1)
        self._parts = [Member(name, keys[name], directory, policy, entropy).join(plan) for name in plan.members]
        self._server = Aggregator(plan, directory, workers)
        self._answer(Kind.ADVERTISE, lambda part, _: part.advertise(), dict.fromkeys(plan.members, b""))
        self._answer(Kind.SHARE, Participant.share, self._close())
        self._sealed = self._close()

    def _close(self) -> dict[str, bytes]:
        with self.timed("server"):
            return self._server.close()

    def _answer(self, kind: Kind, step: Callable[[Participant, bytes], bytes], inbox: dict[str, bytes]) -> None:
        """One step of all members that speak in it."""
        for place in np.flatnonzero(self.course.spoke[kind]).tolist():
            self._send(place, step, inbox)

    def _send(self, place: int, step: Callable[[Participant, bytes], bytes], inbox: dict[str, bytes]) -> None:
        with self.timed("clients"):
            message = step(self._parts[place], inbox[self.plan.members[place]])
        with self.timed("server"):
            self._server.receive(message)

    def add(self, place: int, values: Integers) -> None:
        self._send(place, lambda part, sealed: part.mask(sealed, values), self._sealed)

    def total(self) -> Integers:
        self._answer(Kind.CONFIRM, Participant.confirm, self._close())
        self._answer(Kind.UNMASK, Participant.unmask, self._close())
        with self.timed("server"):
            return self._server.total().total
