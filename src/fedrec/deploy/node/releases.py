"""What a run's uploads cost the node's users, against what the node's owner allows."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Mapping
from dataclasses import replace
from functools import cached_property
from math import inf
from typing import Any

import numpy as np

from fedrec.core.method import Method
from fedrec.core.sums import SumField
from fedrec.data.ragged import Int64
from fedrec.deploy.messages.letters import Answer, Ask
from fedrec.deploy.node.ledger import NodeLedger
from fedrec.deploy.node.share import NodeOptions, Share
from fedrec.deploy.node.summing import sum_shapes
from fedrec.evaluation.sums import MetricSums
from fedrec.keyed import U64
from fedrec.privacy.accountant import local_release
from fedrec.privacy.fields import always_telling
from fedrec.privacy.guard import NoiseGuard, release_of_plan
from fedrec.privacy.spending import UNBOUNDED, Spent
from fedrec.privacy.summed import norms_of
from fedrec.secure.contribution import Parts
from fedrec.secure.identity import host_of
from fedrec.secure.plan import Plan
from fedrec.secure.randomness import Stream
from fedrec.secure.ring import Integers

StreamOf = Callable[[], Stream]


def whose(ask: Ask) -> str:
    """Names the clients that a message asks for."""
    return hashlib.blake2b(ask.positions.astype(np.int64).tobytes(), digest_size=8).hexdigest()


class Releases:
    """Charges the uploads of one run."""

    def __init__(self, options: NodeOptions, method: Method[Any, Any, Any, Any]) -> None:
        self.policy, self.method = options.policy, method
        self.ledger = NodeLedger(options.folder, options.policy)

    @property
    def guarded(self) -> bool:
        """Whether each round is answered once only: where noise hides anything, or the owner sets limits."""
        return self.method.settings.noise > 0 or self.policy.limits

    def sendable(self, answer: Answer) -> Answer:
        """What leaves beside uploads: neither losses nor metrics where the owner has limits, since no noise covers
        them, and with a model of its choice a server asks by them what is in a history."""
        if not self.policy.limits:
            return answer
        kept = replace(answer, loss=0.0)
        return replace(kept, valid=MetricSums(), test=MetricSums()) if self.policy.withholds_metrics else kept

    def allow(self, secure: bool = False) -> None:
        """Refuse a run that the owner does not want, before anything is prepared; secure sums come with their plans."""
        settings, bounded = self.method.settings, self.method.contribution()
        norm = settings.clip or (inf if bounded is None else bounded.norm)
        if not secure:
            self.policy.check_run(settings.noise, norm)
            self.policy.check_fields(self.method.name, always_telling(self.method.Upload))
        self.policy.check_budget(self.ledger.read().spent())

    def charge(
        self, run: str, round: int, clients: U64, coordinates: int, telling: frozenset[str] = frozenset()
    ) -> None:
        """Charge the uploads of these clients; raises where the budget does not allow them, and where the owner has
        limits and some of their fields, those ``telling``, leave as they are."""
        self.policy.check_fields(self.method.name, telling)
        spent, _ = local_release(self.method.settings, coordinates, self.method.contribution())
        self.ledger.charge(run, round, clients, spent)


class SumReleases(NoiseGuard):
    """Charges what this node puts into secure sums, and adds its share of their noise.

    For every vector that is made, the clients whose data is in it are charged, whatever their numbers are: where the
    others sign and open that attempt, it is released without this node. Losses are not sent where there is a budget or
    a limit.
    """

    def __init__(self, releases: Releases, share: Share, colluding: float, private: bool, stream: StreamOf) -> None:
        super().__init__(colluding, stream)
        self.releases, self.share = releases, share
        self.private = private or releases.policy.limits

    def bounded(self, parts: Parts) -> Parts:
        return super().bounded(parts) if self.private else parts

    def noise(self, plan: Plan) -> Integers | None:
        return super().noise(plan) if any(self._noises(plan).values()) else None

    def charge(self, plan: Plan, clients: Mapping[str, Int64]) -> set[str]:
        noise = self._noises(plan)
        if not noise:
            return set(clients)
        members = {name: self.share.block.client_keys[own] for name, own in clients.items()}
        return self.releases.ledger.charge_sum(
            plan.run, plan.round // 2, plan.attempt, members, self._cost(plan, noise)
        )

    def _noises(self, plan: Plan) -> dict[str, float]:
        """The noise in the method's own sums."""
        return {field.name: field.noise for field in plan.layout.fields if field.name in self._fields}

    def _cost(self, plan: Plan, noise: dict[str, float]) -> Spent:
        """What the sum costs a user; raises where the owner wants more noise, or smaller contributions."""
        settings, policy = self.releases.method.settings, self.releases.policy
        if all(one > 0 for one in noise.values()):
            bounded = self.releases.method.contribution()
            norms, nonnegative = norms_of(self._fields, settings, bounded, users=self.share.most_users)
            exact = settings.model_copy(update={"precision": "float64"})  # an owner's bound leaves rounding out
            meant, _ = norms_of(self._fields, exact, bounded, users=self.share.most_users)
            group, norm = next(iter(meant.items()))  # the method's own numbers come first, then weights
            policy.check_run(min(noise[name] for name in group), norm)
            alone = self.share.most_users == 1 and host_of(plan.members[0]) != plan.members[0]
            return release_of_plan(plan, norms, nonnegative, alone, self.colluding)
        policy.check_run(0.0, inf)
        return UNBOUNDED

    @cached_property
    def _fields(self) -> dict[str, SumField]:
        return sum_shapes(self.releases.method, 0, self.share)
