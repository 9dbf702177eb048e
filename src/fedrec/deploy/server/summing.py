"""The server's side with secure sums: nodes train and evaluate as ever, and what they have is summed, never sent.

An exchange has two halves. First every node is asked to train and to evaluate; it says only that it is done. Then those
that are make a secure sum (:mod:`fedrec.secure`), five short exchanges of letters for each cohort. Whoever falls silent
on the way is left out or made up for; where too few are left, the sum is tried again with fresh keys. A sum that fails
after members have signed who is in it is not tried again, for they would refuse: that round is skipped, the server's
state stays as it was, and the record says why.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import cached_property
from typing import Any

import numpy as np

from fedrec.core import wire
from fedrec.core.disclosed import Disclosed
from fedrec.core.loop import Evaluated
from fedrec.core.method import Keys
from fedrec.core.misfit import Misfit, finite
from fedrec.core.sums import Sums
from fedrec.data.ragged import Int64
from fedrec.deploy.members import hosts_of
from fedrec.deploy.messages.agreement import agreement
from fedrec.deploy.messages.envelope import one_line
from fedrec.deploy.messages.letters import Answer, Ask
from fedrec.deploy.node.summing import sum_number
from fedrec.deploy.server.cohort_sum import sum_cohort
from fedrec.deploy.server.exchange import Exchanged, Taken
from fedrec.deploy.server.federation import Federation, TooFewNodes
from fedrec.deploy.server.room import refuse_coarse, refuse_drowned
from fedrec.deploy.server.roster import Place
from fedrec.errors import BadInput
from fedrec.evaluation.sums import MetricSums
from fedrec.privacy.guard import noise_in_total
from fedrec.privacy.summed import Budget, SumNoise, about_the_noise, most_rounds, sum_noise
from fedrec.runs.plan import participation_of
from fedrec.runs.settings import RunSettings
from fedrec.secure.aggregator import SecureSum
from fedrec.secure.cohorts import Total, assign, sum_of_sums
from fedrec.secure.contribution import EVALUATED, LOSS, bound_of, layout_of, metric_fields
from fedrec.secure.course import Costs
from fedrec.secure.failures import FewTrained, SecureFailure, TooFew
from fedrec.secure.identity import Hosts, client_of, host_of
from fedrec.secure.layout import Layout
from fedrec.secure.noise import noisy_summands, summands_of
from fedrec.secure.plan import Plan
from fedrec.secure.policy import Policy
from fedrec.secure.ring import Bits
from fedrec.secure.rules import Rules
from fedrec.secure.trained import rules_among

log = logging.getLogger("fedrec.deploy")

MADE_SILENT = "left out: the others fell silent where it did not"


def rules_for(members: int, settings: RunSettings, trained: int = 0) -> Rules:
    """How a cohort of so many is protected, of whom so many have trained (0: all)."""
    chosen = (settings.secure_dropout, settings.secure_colluding, settings.secure_least)
    return rules_among(members, trained, *chosen)


class SecureFederation(Federation):
    """A :class:`~fedrec.deploy.server.federation.Federation` whose server sees sums of cohorts only."""

    settings: RunSettings
    directory: Hosts
    begun: dict[int, int]
    """How often each sum was begun, by its number: members join no attempt twice."""
    beginning: Callable[[], None]
    """Called with every new attempt, before anybody is asked for it: a server that comes back goes on counting."""
    agreed: str
    """What the members of the present sums must have trained with."""

    def __post_init__(self) -> None:
        super().__post_init__()
        self.begun, self.beginning, self.agreed = {}, lambda: None, ""

    def with_members(self, settings: RunSettings, members: Mapping[str, Any]) -> None:
        """Who takes part, and the run's settings of secure sums."""
        self.settings, self.directory = settings, hosts_of(members)

    def disclosed(self) -> Disclosed | None:
        return None if self.summed is None else Disclosed(summands=self.summed.summands)

    def recall(self, shown: Disclosed | None, rounds: int) -> None:
        if shown is not None and shown.summands and self.summed is not None:
            self.summed = replace(self.summed, summands=shown.summands)

    def _checked(self, name: str, ask: Ask, answer: Answer) -> Taken:
        if self.roster.find(name) is None:
            raise Misfit("not one of this run's nodes")
        if answer.uploads or answer.loss or answer.valid.count or answer.test.count:
            raise Misfit("numbers of its own, where only sums are asked for")
        return Taken(answer, ())

    def _exchange(self, answering: Int64, evaluate: int = 0, train: int = 0, local: bool = False) -> Exchanged:
        began, summing = time.perf_counter(), 0.0
        whole = bool(evaluate) or local
        asks = self._asks(answering, evaluate, train, local, whole)
        strangers = {name: "not in the list of members" for name in asks if name not in self.directory}
        asks = {name: ask for name, ask in asks.items() if name not in strangers}
        layout, costs = self._layout(train, whole), Costs()
        sent = next(iter(asks.values())).download if asks else b""
        self.agreed = agreement(self.settings, wire.decode(self.method.Download, sent)) if asks else ""
        taken: dict[str, Taken] = {}
        faults: dict[str, str] = {}
        total: Total | None = None
        survivors: set[str] = set()
        skipped, unsent = "", False
        silent: dict[str, str] = {}
        number = sum_number(evaluate, train)
        attempts = min(self.rules.attempts, Policy.attempts)  # members make no more
        for attempt in range(attempts):
            found, faults = self._attempt({name: ask for name, ask in asks.items() if name not in taken})
            taken |= found
            before, why = time.perf_counter(), ""
            taking = taken if attempt + 1 < attempts else self._without(silent, taken, asks, whole)
            in_steps = {name: silent.get(name, MADE_SILENT) for name in taken if name not in taking}
            try:
                if not self._enough(taken, asks):
                    raise TooFew(f"{len(taken)} of {len(asks)} nodes are there, least={self.rules.least}")
                members = self._members(taking, asks, whole)
                idle = set(members) - self._adding(taking, asks) if train else set[str]()
                sums = self._sums(number, members, idle, layout, costs, in_steps)
                total = sum_of_sums(sums)
                survivors = {name for part in sums for name in part.survivors}
            except SecureFailure as failure:
                why = one_line(failure)
                if not failure.repeat:
                    skipped, unsent = why, isinstance(failure, FewTrained) and not self.begun.get(number)
            summing += time.perf_counter() - before
            faults |= in_steps
            silent |= in_steps
            if total is not None or skipped:
                break
            costs.repeated += 1
            said = "; ".join([why, *(f"{name}: {reason}" for name, reason in sorted(faults.items()))])
            what = f"of round {train}" if train else f"of the evaluation of round {evaluate}"
            log.warning("sum %s, attempt %d: %s", what, attempt, said)
            if attempt + 1 == attempts:
                raise TooFewNodes(f"no secure sum, and nothing of it was used: {said}")
            self._await(list(asks))
            taken = {name: one for name, one in taken.items() if name in self.exchange.online()}
        missing = [f"{name}: {reason}" for name, reason in sorted({**faults, **strangers}.items())]
        state = self.server
        clients = np.zeros(0, np.int64)
        implausible = ""
        loss, metrics = 0.0, Evaluated(MetricSums(), MetricSums())
        inside = {host_of(name) for name in survivors}
        if total is not None:
            fields = total.fields
            loss = float(fields.pop(LOSS))
            if whole:
                users = sum(self._users(name) for name in survivors)
                error = {part: layout.scales[part].error(len(survivors)) for part in EVALUATED}
                valid, test = (self._metric_sums(fields.pop(part), error[part]) for part in EVALUATED)
                implausible = "; ".join(filter(None, (one.fault(self.metrics.names, users) for one in (valid, test))))
                metrics = metrics if implausible else Evaluated(valid, test)
            clients = self._clients(survivors, answering) if train else clients
            if train:
                state, skipped = self._finished(Sums(fields, clients, self._noise(sums)), train)
                if skipped:
                    clients, inside = clients[:0], set()
        if implausible:  # some member's doing, and nobody can tell whose
            missing.append(f"the evaluation is not used: {implausible}")
        if skipped:
            missing.append(f"round {train or evaluate} is skipped: {skipped}")
        for line in missing:
            log.warning("round %s: %s", train or evaluate, line)
        secure = costs.as_dict(max(1, len(clients)), layout, 0.0) if total is not None else None
        return Exchanged(
            answering=answering,
            nodes=tuple(name for name in taken if name in inside and len(asks[name].positions)),
            missing=tuple(missing),
            seconds=time.perf_counter() - began - summing,
            state=state,
            aggregate_seconds=summing,
            clients=len(clients),
            loss=loss,
            upload=sum(secure["bytes"]["upload"].values()) if secure else 0.0,
            metrics=metrics,
            secure=secure,
            unsent=unsent,
        )

    def _finished(self, sums: Sums, number: int) -> tuple[Any, str]:
        """The next state, or the present one and why the sum is not used."""
        try:
            with np.errstate(over="ignore", invalid="ignore", divide="ignore"):
                state = self.method.finish(self.server, sums, Keys(self.seed, number))
        except Exception as problem:
            return self.server, f"the sum cannot be used: {type(problem).__name__}: {one_line(problem)}"
        if not finite(state) or not self._works(state):
            return self.server, "the sum leaves a state that no client could work with"
        return state, ""

    # what is summed, and by whom

    @cached_property
    def summed(self) -> SumNoise | None:
        """The noise of the run's sums, where it has a budget; nodes add it, and check what it is worth."""
        chosen = self.settings
        if chosen.epsilon is None:
            return None
        keys, people = self.roster.client_keys, participation_of(chosen)
        names = self._members({place.name: None for place in self.roster.places}, {}, True)
        smallest = assign(names, self.seed, self.run, 1, chosen.secure_cohort).smallest
        rules = rules_for(smallest, chosen)
        users = int(self.roster.users.max(initial=1))
        budget = Budget(chosen.epsilon, chosen.delta)
        releases = 1 if self.method.contributes_once else most_rounds(people, self.seed, chosen.rounds, keys)
        self._refuse_drowned(budget, releases)
        return sum_noise(
            budget,
            self.method.sum_fields(self.server, users),
            self.method.settings,
            self.method.contribution(),
            lambda noise, bits: self._layout(1, True, noise, bits),
            users=users,
            releases=releases,
            summands=noisy_summands(smallest, rules.least_survivors, chosen.secure_colluding),
            nodes=chosen.secure_by == "nodes",
        )

    def _refuse_drowned(self, budget: Budget, releases: int) -> None:
        method = self.method

        def noise(users: int) -> Mapping[str, float]:
            fields, bounded = method.sum_fields(self.server, users), method.contribution()
            return about_the_noise(budget, fields, method.settings, bounded, users=users, releases=releases)

        def bounds(users: int) -> Mapping[str, float]:
            fields = method.sum_fields(self.server, users)
            return {name: bound_of(one, method.settings, users) for name, one in fields.items()}

        refuse_drowned(noise, bounds, self.roster)

    def _noise(self, sums: Sequence[SecureSum]) -> dict[str, float]:
        """The deviation of the noise in the sum of these cohorts."""
        if self.summed is None:
            return {}
        sizes = {one.plan: len(one.survivors) for one in sums}
        return noise_in_total(self.summed, sizes, self.settings.secure_colluding)

    def _layout(
        self, train: int, whole: bool, noise: Mapping[str, float] | None = None, bits: Bits | None = None
    ) -> Layout:
        if noise is None and train and self.summed is not None:
            noise, bits = self.summed.noise, self.summed.bits
        users = int(self.roster.users.max(initial=1))
        single = self.settings.secure_by == "clients"
        clients = 1 if single else max(len(place.client_keys) for place in self.roster.places)
        fields = dict(self.method.sum_fields(self.server, users)) if train else {}
        if whole:
            fields |= metric_fields(self.metrics.names, users)
        everyone = len(self.roster.client_keys) if single else len(self.roster.places)
        most = max(3, min(everyone, 2 * self.settings.secure_cohort))
        found = layout_of(
            fields,
            self.method.settings,
            users=users,
            clients=clients,
            summands=most,
            everyone=everyone,
            noise=noise,
            bits=bits,
        )
        refuse_coarse(found, fields, self.roster)
        return found

    def _names(self, taken: Mapping[str, Any], positions: Callable[[Place], Int64]) -> list[str]:
        """The members among those taken, each of which has something to do at these positions of its clients."""
        found: list[str] = []
        for place in self.roster.places:
            here = positions(place).tolist() if place.name in taken else []
            single = self.settings.secure_by == "clients"
            found += [client_of(place.name, one) for one in here] if single else [place.name] * bool(here)
        return found

    def _members(self, taken: Mapping[str, Any], asks: Mapping[str, Ask], whole: bool) -> list[str]:
        """Who takes part: all whose models are evaluated, or those that train."""

        def here(place: Place) -> Int64:
            return np.arange(len(place.client_keys)) if whole else asks[place.name].positions

        return self._names(taken, here)

    def _adding(self, taken: Mapping[str, Any], asks: Mapping[str, Ask]) -> set[str]:
        """Who adds something to the method's sums: those that train, and of whose clients some are not silent."""

        def here(place: Place) -> Int64:
            positions = asks[place.name].positions
            silent = self.method.silent_of(self.server, place.first + positions)
            return positions if silent is None else positions[~silent]

        return set(self._names(taken, here))

    def _without(
        self, silent: Mapping[str, str], taken: Mapping[str, Taken], asks: Mapping[str, Ask], whole: bool
    ) -> Any:
        """For the last attempt: those that never fell silent in a step, where they are enough.

        Where they are not, they may be why the others did: whose shares cannot be opened makes its neighbours refuse.
        """
        steady = {name: one for name, one in taken.items() if name not in silent}
        others = {name: one for name, one in taken.items() if name in silent}
        for some in (steady, others):
            if self._enough(some, asks) and len(self._members(some, asks, whole)) >= self.settings.secure_least:
                return some
        return taken

    def _users(self, member: str) -> int:
        """How many users a member has."""
        place = self.roster.find(host_of(member))
        assert place is not None
        return int(place.users.sum() if member == place.name else place.users[int(member.rpartition("/")[2])])

    def _clients(self, survivors: set[str], answering: Int64) -> Int64:
        """The clients in the sum that trained."""
        single, found = self.settings.secure_by == "clients", []
        for place in self.roster.places:
            for client in place.among(answering).tolist():
                if (client_of(place.name, client - place.first) if single else place.name) in survivors:
                    found.append(client)
        return np.array(found, np.int64)

    def _next_attempt(self, number: int) -> int:
        attempt = self.begun.get(number, 0)
        if attempt >= Policy.attempts:
            raise TooFew(f"its sum was tried {attempt} times, and members try no more", repeat=False)
        self.begun[number] = attempt + 1
        self.beginning()
        return attempt

    def _metric_sums(self, numbers: Any, error: float) -> MetricSums:
        """The sums of users' metrics; what is beyond what they can be by no more than fixed point errs is put right."""
        count, sums = round(float(numbers[0])), numbers[1:]
        inside = np.clip(sums, 0.0, max(count, 0))
        sums = np.where(np.abs(sums - inside) <= error, inside, sums)
        return MetricSums(dict(zip(sorted(self.metrics.names), sums.tolist(), strict=True)), count)

    def _sums(
        self,
        number: int,
        members: list[str],
        idle: set[str],
        layout: Layout,
        costs: Costs,
        faults: dict[str, str],
    ) -> list[SecureSum]:
        least = self.settings.secure_least
        if len(members) < least:
            raise TooFew(f"{len(members)} participants, a secure sum needs {least}")
        groups = assign(members, self.seed, self.run, number, self.settings.secure_cohort, idle).groups
        try:
            every = [rules_for(len(group), self.settings, len(set(group) - idle)) for group in groups]
        except BadInput as problem:  # of those the run began with there were enough: some are away
            raise TooFew(str(problem)) from None
        attempt, sums = self._next_attempt(number), []
        for cohort, (group, rules) in enumerate(zip(groups, every, strict=True)):
            plan = Plan.of(
                self.run, number, list(group), layout, rules,
                cohort=cohort, attempt=attempt, idle=idle, agreed=self.agreed,
            )  # fmt: skip
            if self.summed is not None:  # of a plan with fewer members the shares are larger; the card states these
                found = summands_of(plan, self.settings.secure_colluding)
                self.summed = replace(self.summed, summands=min(found, self.summed.summands))
            try:
                sums.append(sum_cohort(plan, self.directory, self.exchange, self.rules.step, costs, faults))
            except TooFew as few:
                # members of a cohort that is summed already would refuse a second attempt
                raise TooFew(str(few), few.repeat and not sums) from None
        return sums
