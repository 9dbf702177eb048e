"""The in-process runtime with secure sums: real keys and masks, cohort after cohort, so that any number can take part.

A client that drops out falls silent in one of the protocol's first three steps, drawn anew in every attempt; of the
others as many fall silent later, when their vector is in the sum already. A cohort with too few left is summed again
with fresh keys, without those who are gone. All of that is known before anybody trains: a round that cannot be summed
raises, and changes neither the server's state nor anybody's own.
"""

from __future__ import annotations

import time
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import Any

import numpy as np

from fedrec import keyed
from fedrec.core.loop import Cost, Evaluated
from fedrec.core.method import Keys, Method
from fedrec.core.participation import Participation
from fedrec.core.population import Population
from fedrec.core.sums import Sums
from fedrec.data.ragged import Int64
from fedrec.errors import BadInput
from fedrec.evaluation.task import Task
from fedrec.runs.plan import participation_of
from fedrec.runs.settings import RunSettings
from fedrec.secure.aggregator import SecureSum
from fedrec.secure.cohorts import SIZE, assign, sum_of_sums
from fedrec.secure.contribution import LOSS, Guard, layout_of, loss_of, vector_of
from fedrec.secure.course import Costs, Course
from fedrec.secure.failures import FewTrained, TooFew
from fedrec.secure.layout import Layout
from fedrec.secure.messages import Kind
from fedrec.secure.plan import Plan
from fedrec.secure.policy import Policy
from fedrec.secure.ring import Bits, Integers
from fedrec.secure.simulate import Cohort, Level
from fedrec.secure.trained import rules_among
from fedrec.simulate.runtime import Simulator
from fedrec.simulate.twins import with_twins

RUN = "simulation"


@dataclass(frozen=True)
class SecureOptions:
    """How secure sums are made."""

    nodes: int = 0
    """So many nodes add up their clients; 0: every client takes part itself."""
    least: int = 3
    dropout: float = 0.1
    """Allowed share."""
    colluding: float = 0.05
    cohort: int = SIZE
    work: Level = "masks"
    silent: float = 0.0
    """Probability with which clients fall silent (``--dropout``)."""
    attempts: int = Policy.attempts
    participation: Participation | None = None
    """Who will be chosen, where it is known: too few for a secure sum are found before the first round."""

    @classmethod
    def of(cls, settings: RunSettings) -> SecureOptions:
        return cls(
            settings.nodes if settings.secure_by == "nodes" else 0,
            settings.secure_least,
            settings.secure_dropout,
            settings.secure_colluding,
            settings.secure_cohort,
            settings.secure_work,
            settings.dropout,
            participation=participation_of(settings),
        )


class SecureSimulator(Simulator):
    """A :class:`~fedrec.simulate.runtime.Simulator` whose server sees sums of cohorts only."""

    guard: Guard = Guard()

    def __init__(
        self,
        method: Method[Any, Any, Any, Any],
        people: Population,
        task: Task,
        seed: int,
        secure: SecureOptions,
        **options: Any,
    ) -> None:
        super().__init__(method, people, task, seed, **options)
        self.secure = secure
        n = people.world.n_clients
        if secure.nodes:
            groups = np.array_split(np.arange(n), secure.nodes)
            self.owner = np.repeat(np.arange(secure.nodes), [len(group) for group in groups])
            self.names = [f"node{number:0{len(str(secure.nodes - 1))}d}" for number in range(secure.nodes)]
        else:
            self.owner, self.names = np.arange(n), list(people.client_ids)
        self._place = {name: place for place, name in enumerate(self.names)}
        self.most_users = int(self.users.max(initial=1))  # of one client
        _ = self.layout  # a method or a bound that cannot be summed is known before the first round
        if secure.participation is not None:
            self._check_first(secure.participation)

    @property
    def layout(self) -> Layout:
        """What is summed with the server's present state."""
        return self.layout_with()

    def layout_with(self, noise: Mapping[str, float] | None = None, bits: Bits | None = None) -> Layout:
        """The same with noise in its fields."""
        return layout_of(
            self.method.sum_fields(self.server, self.most_users),
            self.method.settings,
            users=self.most_users,
            clients=int(np.bincount(self.owner).max(initial=1)),
            summands=min(len(self.names), 2 * self.secure.cohort),
            everyone=len(self.names),
            noise=noise,
            bits=bits,
        )

    def noise_of(self, courses: list[Course]) -> dict[str, float]:
        """The deviation of the noise in the sum over these cohorts; none here."""
        return {}

    def round(self, number: int, chosen: Int64, answering: Int64, evaluate: bool) -> tuple[Cost, Evaluated | None]:
        layout, costs = self.layout, Costs()
        asked = answering if self.secure.nodes else chosen  # a node answers for those of its clients that do
        try:
            courses = self._courses(number, chosen, answering, layout, costs, self._idle(asked))
            inside = [self._clients(course, answering) for course in courses]
            self._check_trained(courses, inside, costs)
        except TooFew as few:
            unsent = isinstance(few, FewTrained) and not costs.repeated
            if not unsent:
                self.lost(costs.lost, answering)
            if few.repeat:
                raise
            return self._skipped(f"round {number} is skipped: {few}", evaluate, unsent)
        self.lost(costs.lost, answering)
        answering = np.concatenate(inside)
        before = time.perf_counter()
        done, keys = self._begin(answering, evaluate), Keys(self.seed, number)
        # cohort after cohort: one at a time is open
        total = sum_of_sums(self._sums(courses, inside, keys, evaluate, done, costs)).fields
        done.loss = float(total.pop(LOSS))
        plain = done.upload / max(1, len(answering))
        done.upload = int(costs.steps[0].sum())
        done.download += int(costs.steps[1].sum())
        self.server = self.method.finish(self.server, Sums(total, answering, self.noise_of(courses)), keys)
        cost, evaluated = self._end(chosen, answering, evaluate, done, time.perf_counter() - before)
        return replace(cost, secure=costs.as_dict(len(answering), layout, plain)), evaluated

    def _check_trained(self, courses: list[Course], inside: list[Int64], costs: Costs) -> None:
        """Raise where of those who stayed too few have trained."""
        idle = self._idle(np.concatenate(inside))
        for cohort, clients in enumerate(inside):
            names = {self.names[owner] for owner in np.unique(self.owner[clients])}
            if 0 < len(names - idle) < self.secure.least:
                costs.lost += courses[: cohort + 1]
                had = f"{len(names - idle)} of {len(names)} participants that stayed have trained"
                raise TooFew(f"{had}, a secure sum needs {self.secure.least}", repeat=False)

    def _idle(self, clients: Int64) -> set[str]:
        """Participants of whose clients among these none adds anything."""
        silent = self.method.silent_of(self.server, self.people.block.clients[clients])
        if silent is None:
            return set()
        adding = np.unique(self.owner[clients[~silent]])
        return {self.names[owner] for owner in np.setdiff1d(self.owner[clients], adding)}

    def _skipped(self, why: str, evaluate: bool, unsent: bool) -> tuple[Cost, Evaluated | None]:
        """A round without a sum: everybody and the server stay as they are."""
        nobody = np.zeros(0, np.int64)
        cost, evaluated = self._end(nobody, nobody, evaluate, self._begin(nobody, evaluate), 0.0)
        return replace(cost, missing=(why,), unsent=unsent), evaluated

    # who is with whom, and who falls silent when

    def _courses(
        self,
        number: int,
        chosen: Int64,
        answering: Int64,
        layout: Layout,
        costs: Costs,
        idle: Collection[str] = (),
    ) -> list[Course]:
        """An attempt that works for every cohort; raises where there is none."""
        taking = self._taking(chosen, answering)
        if len(taking) < self.secure.least:
            raise TooFew(
                f"round {number}: {len(taking)} participants, a secure sum needs {self.secure.least}; nothing was sent"
            )
        groups = assign(taking, self.seed, RUN, number, self.secure.cohort, idle).groups
        courses: list[Course] = []
        try:
            for cohort, group in enumerate(groups):
                courses.append(self._course(number, cohort, list(group), answering, layout, costs, idle))
        except TooFew:
            costs.lost += courses  # a cohort after the other: these were summed already
            raise
        return courses

    def _taking(self, chosen: Int64, answering: Int64) -> list[str]:
        """Who takes part in a round's sums."""
        people = chosen if not self.secure.nodes else answering  # a node answers for those of its clients that do
        return [self.names[owner] for owner in np.unique(self.owner[people])]

    def _check_first(self, participation: Participation) -> None:
        """Too few in the first round for the sums that were asked for are bad input, not a failure on the way."""
        keys, least = self.people.block.client_keys, self.secure.least
        chosen = participation.choose(self.seed, 1, keys)
        taking = self._taking(chosen, participation.answering(self.seed, 1, keys, chosen))
        who, more = ("nodes", "--nodes") if self.secure.nodes else ("clients", "clients (--participation, --clients)")
        if len(taking) < least:
            raise BadInput(
                f"only {len(taking)} of {len(self.names)} {who} take part in round 1, and a secure sum needs {least} "
                f"(--secure-least); give more {more}, or leave --secure out"
            )
        smallest = assign(taking, self.seed, RUN, 1, self.secure.cohort).smallest
        if smallest < least:
            raise BadInput(
                f"cohorts have {smallest} {who}, and a secure sum needs {least} (--secure-least); give a larger "
                "--secure-cohort, or a smaller --secure-least"
            )

    def _course(
        self,
        number: int,
        cohort: int,
        members: list[str],
        answering: Int64,
        layout: Layout,
        costs: Costs,
        idle: Collection[str],
    ) -> Course:
        chosen, why = self.secure, ""
        for attempt in range(chosen.attempts):
            if len(members) < chosen.least:
                why = f"{len(members)} participants are left, {chosen.least} are needed"
                break
            trained = sum(name not in idle for name in members)
            try:
                rules = rules_among(len(members), trained, chosen.dropout, chosen.colluding, chosen.least)
            except BadInput as problem:
                if not attempt:
                    raise
                why = str(problem)
                break
            plan = Plan.of(RUN, number, members, layout, rules, cohort=cohort, attempt=attempt, idle=idle)
            silent = self._silent(plan, answering)
            course = Course.tried(plan, silent)
            if course.failed is None:
                return course
            costs.lost.append(course)
            if not course.failed.repeat:  # its members sign no second list in this round
                why = f"no secure sum of cohort {cohort}, and nothing of it was used: {course.failed}"
                raise TooFew(why, repeat=False)
            costs.repeated += 1
            why = str(course.failed)
            gone = {plan.members[place] for place, step in silent.items() if step <= Kind.INPUT}
            members = [name for name in members if name not in gone]
        raise TooFew(f"round {number} has no secure sum of cohort {cohort}, and nothing of it was used: {why}")

    def _silent(self, plan: Plan, answering: Int64) -> dict[int, Kind]:
        """The step from which on members are silent."""
        if self.secure.nodes:
            return {}
        places = np.array([self._place[name] for name in plan.members])
        base = keyed.stream(self.seed, plan.round, "silent", plan.attempt)
        draws = keyed.uniform(keyed.streams(base, self.people.block.client_keys[places]), 2)
        gone = ~np.isin(places, answering)
        late = ~gone & (draws[:, 0] < self.secure.silent)
        step = np.where(gone, (3 * draws[:, 1]).astype(int), 3 + (2 * draws[:, 1]).astype(int))
        return {int(place): Kind(int(step[place])) for place in np.flatnonzero(gone | late)}

    def _clients(self, course: Course, answering: Int64) -> Int64:
        """Positions of the clients in a cohort's sum, participant after participant."""
        inside = np.array([self._place[course.plan.members[place]] for place in course.survivors])
        own = answering[np.isin(self.owner[answering], inside)]
        return own[np.argsort(self.owner[own], kind="stable")]

    # the sums

    def leaving(self, course: Course, name: str, parts: Mapping[str, Any], vector: Integers) -> None:
        """A participant's whole numbers, on their way to be masked, and what they were made of.

        An audit looks at them.
        """

    def lost(self, courses: list[Course], answering: Int64) -> None:
        """Attempts of whose sums nothing is used, though vectors may have left; a ledger counts them."""

    def summed_up(self, total: SecureSum) -> None:
        """A cohort's sum as the server has it; an audit looks at it here."""

    def _sums(
        self, courses: list[Course], inside: list[Int64], keys: Keys, evaluate: bool, done: Any, costs: Costs
    ) -> Iterator[SecureSum]:
        for course, clients in zip(courses, inside, strict=True):
            cohort = Cohort(course.plan, course.dropouts, seed=self.seed, level=self.secure.work)
            for name, parts in self._parts(clients, keys, evaluate, done):
                vector = vector_of(course.plan, parts, self.guard)
                self.leaving(course, name, parts, vector)
                cohort.add(course.plan.place[name], vector)
            found = cohort.finish()
            self.summed_up(found.sum)
            costs.add(len(found.sum.survivors), found.traffic, found.seconds)
            yield found.sum

    def _parts(self, clients: Int64, keys: Keys, evaluate: bool, done: Any) -> Iterator[tuple[str, dict[str, Any]]]:
        """Each participant with the sum over its clients."""
        drawn = self.method.settings.noise > 0 or self.method.settings.compress != "none"
        if not self.secure.nodes or evaluate or drawn or not self.method.follows_history:
            return self._added(clients, keys, evaluate, done)
        groups = np.split(clients, np.flatnonzero(np.diff(self.owner[clients])) + 1)
        names = [self.names[self.owner[group[0]]] for group in groups]
        return with_twins(self, groups, names, done, lambda group: self._added(group, keys, evaluate, done))

    def _added(self, clients: Int64, keys: Keys, evaluate: bool, done: Any) -> Iterator[tuple[str, dict[str, Any]]]:
        """The same, client after client."""
        owners, seen = self.owner[clients], 0
        shapes = {one.name: one.shape for one in self.layout.fields}
        parts: dict[str, Any] = {}
        for work in self.work(clients, keys, evaluate, done):
            summands = self.method.summands(work.reply.upload, work.download)
            losses = loss_of(work.loss)
            ends = np.flatnonzero(np.diff(owners[seen : seen + len(losses)])) + 1
            for first, last in pairwise([0, *ends.tolist(), len(losses)]):
                if not parts:
                    parts = {name: np.zeros(shape) for name, shape in shapes.items()}
                for name, summand in summands.items():
                    summand.between(first, last).add_to(parts[name])
                parts[LOSS] = parts[LOSS] + losses[first:last].sum()
                seen += last - first
                if seen == len(owners) or owners[seen] != owners[seen - 1]:
                    yield self.names[owners[seen - 1]], parts
                    parts = {}
