"""The ledgers of simulated participants: as deployed, each release is charged before it is sent."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from fedrec.keyed import U64
from fedrec.privacy.guard import release_of_plan
from fedrec.privacy.ledger import Ledger
from fedrec.privacy.spending import Spent
from fedrec.privacy.summed import SumNoise
from fedrec.secure.plan import Plan

Chosen = Callable[[int], list[str]]
"""Who takes part in a round."""


class Ledgers:
    """One for each participant, in memory."""

    def __init__(self, keys: Mapping[str, U64], noise: SumNoise, colluding: float) -> None:
        """``keys`` are those of each participant's clients."""
        self.keys, self.noise, self.colluding = keys, noise, colluding
        self.each: dict[str, Ledger] = {}
        self._cost: tuple[bytes, Spent] = b"", Spent()

    def charge(self, plan: Plan, name: str, parts: Mapping[str, Any]) -> None:
        """Charge a participant's part of a sum, if it holds anything of its clients."""
        fields = [field for group in self.noise.norms for field in group]
        if any(np.any(parts[field]) for field in fields):
            self._charge(plan.run, plan.round, name, self._release(plan))

    def before(self, run: str, number: int, chosen: Chosen, once: bool) -> None:
        """A run that goes on in another process: rounds before it count for all who were chosen."""
        if not self.each:
            for earlier in range(1, min(2, number) if once else number):
                for name in chosen(earlier):
                    self._charge(run, earlier, name, self.noise.release)

    def _charge(self, run: str, number: int, name: str, spent: Spent) -> None:
        self.each[name] = self.each.get(name, Ledger.empty()).charged(run, number, self.keys[name], spent)

    def _release(self, plan: Plan) -> Spent:
        if self._cost[0] != plan.digest:
            self._cost = plan.digest, release_of_plan(plan, self.noise.norms, self.noise.nonnegative, self.colluding)
        return self._cost[1]

    def stated(self) -> dict[str, Any]:
        """What the participant that gave away most would say."""
        delta = self.noise.budget.delta
        name = max(self.each, key=lambda one: self.each[one].spent().rho, default="")
        most = self.each.get(name, Ledger.empty())
        epsilon = most.spent().epsilon(delta)
        return {"epsilon": epsilon, "delta": delta, "participant": name, "charges": len(most.charges)}
