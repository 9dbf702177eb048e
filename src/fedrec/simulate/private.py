"""Secure sums with noise, in process: a budget for the whole run, kept by noise that participants add in shares."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import suppress
from dataclasses import replace
from typing import Any

import numpy as np

from fedrec.core.disclosed import Disclosed
from fedrec.core.method import Method
from fedrec.core.participation import Participation
from fedrec.core.population import Population
from fedrec.data.ragged import Int64
from fedrec.evaluation.task import Task
from fedrec.privacy.guard import SimulatedGuard, noise_in_total
from fedrec.privacy.summed import Budget, SumNoise, most_rounds, sum_noise
from fedrec.secure.cohorts import assign
from fedrec.secure.course import Costs, Course
from fedrec.secure.failures import TooFew
from fedrec.secure.layout import Layout
from fedrec.secure.noise import noisy_summands, summands_of
from fedrec.secure.ring import Bits
from fedrec.secure.rules import neighbourhood
from fedrec.simulate.ledgers import Ledgers
from fedrec.simulate.secured import RUN, SecureOptions, SecureSimulator


class PrivateSimulator(SecureSimulator):
    """A :class:`~fedrec.simulate.secured.SecureSimulator` whose sums carry the noise that a budget asks for."""

    def __init__(
        self,
        method: Method[Any, Any, Any, Any],
        people: Population,
        task: Task,
        seed: int,
        secure: SecureOptions,
        budget: Budget,
        rounds: int,
        participation: Participation,
        **options: Any,
    ) -> None:
        self.summed: SumNoise | None = None
        """The noise; its ``summands`` are the fewest of all sums so far."""
        self._least = 0
        self._recalled = False
        self.participation = participation
        super().__init__(method, people, task, seed, secure, **options)
        self.drawn = SimulatedGuard(secure.colluding, seed)
        self.guard = self.drawn
        keys = people.block.client_keys
        self.summed = sum_noise(
            budget,
            method.sum_fields(self.server, self.most_users),
            method.settings,
            method.contribution(),
            self.layout_with,
            users=self.most_users,
            releases=1 if method.contributes_once else most_rounds(participation, seed, rounds, keys),
            summands=self._summands(),
            nodes=secure.nodes > 0,
        )

        self.ledgers = Ledgers([self.names[owner] for owner in self.owner], self.summed, secure.colluding)

    def round(self, number: int, *rest: Any) -> Any:
        self._recall(number)
        return super().round(number, *rest)

    def disclosed(self) -> Disclosed | None:
        accounts, holders = self.ledgers.written()
        return Disclosed(self.exposure, self._least, accounts, holders)

    def recall(self, shown: Disclosed | None, rounds: int) -> None:
        super().recall(shown, rounds)
        if shown is not None:
            self._state_least(shown.summands)
            self.ledgers.read(shown.accounts, shown.holders)
            self._recalled = True
        self._recall(rounds + 1)

    def _courses(self, *given: Any) -> list[Course]:
        courses = super()._courses(*given)
        assert self.summed is not None
        # a cohort that lost members was planned again with fewer, whose shares are larger: the card states these
        found = min(summands_of(course.plan, self.secure.colluding) for course in courses)
        self._state_least(found)
        return courses

    def _state_least(self, found: int) -> None:
        assert self.summed is not None
        if found:
            self._least = min(self._least, found) if self._least else found
            self.summed = replace(self.summed, summands=self._least)

    def _recall(self, number: int) -> None:
        """A run that goes on in another process, which wrote nothing down: who fell silent before is drawn by key, so
        it is known here too; the ledgers count all who were chosen."""
        if not self._recalled:
            self._recalled = True
            self.ledgers.before(number, self._chosen, self.method.contributes_once)
        if self._least:
            return
        keys = self.people.block.client_keys
        for earlier in range(1, number):
            chosen = self.participation.choose(self.seed, earlier, keys)
            answering = self.participation.answering(self.seed, earlier, keys, chosen)
            with suppress(TooFew):
                self._courses(earlier, chosen, answering, self.layout, Costs())

    def lost(self, courses: list[Course], answering: Int64) -> None:
        for course in courses:
            if len(course.survivors):
                self._charge(course, self._clients(course, answering))
                self._state_least(summands_of(course.plan, self.secure.colluding))

    def _charge(self, course: Course, clients: Int64) -> None:
        """Charge those whose data is in the vectors of an attempt, whatever their numbers are."""
        silent = self.method.silent_of(self.server, self.people.block.clients[clients])
        self.ledgers.charge(course.plan, clients if silent is None else clients[~silent])

    def _chosen(self, number: int) -> Int64:
        return self.participation.choose(self.seed, number, self.people.block.client_keys)

    def _summands(self) -> int:
        """The fewest honest participants in a sum of the first round; shares are those of each round's own plan."""
        names = [self.names[owner] for owner in np.unique(self.owner[self._chosen(1)])]
        smallest = assign(names, self.seed, RUN, 1, self.secure.cohort).smallest
        rules = neighbourhood(smallest, self.secure.dropout, self.secure.colluding, least=self.secure.least).rules
        return noisy_summands(smallest, rules.least_survivors, self.secure.colluding)

    def layout_with(self, noise: Mapping[str, float] | None = None, bits: Bits | None = None) -> Layout:
        if noise is None and self.summed is not None:
            noise, bits = self.summed.noise, self.summed.bits
        return super().layout_with(noise, bits)

    def noise_of(self, courses: list[Course]) -> dict[str, float]:
        assert self.summed is not None
        sizes = {course.plan: len(course.survivors) for course in courses}
        return noise_in_total(self.summed, sizes, self.secure.colluding)

    def _sums(self, courses: list[Course], inside: list[Int64], *rest: Any) -> Any:
        for course, clients in zip(courses, inside, strict=True):
            self._charge(course, clients)
        self.drawn.survivors = {course.plan.digest: len(course.survivors) for course in courses}
        return super()._sums(courses, inside, *rest)
