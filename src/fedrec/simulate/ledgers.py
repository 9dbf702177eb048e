"""The ledgers of simulated participants: as deployed, each release is charged before it is sent."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from fedrec.core.disclosed import Account
from fedrec.privacy.guard import release_of_plan
from fedrec.privacy.spending import Spent
from fedrec.privacy.summed import SumNoise
from fedrec.secure.plan import Plan

Chosen = Callable[[int], list[str]]
"""Who takes part in a round."""


class Ledgers:
    """What each participant has given away, in memory: all its clients are charged alike, once a round."""

    def __init__(self, names: Sequence[str], noise: SumNoise, colluding: float) -> None:
        self.names, self.noise, self.colluding = names, noise, colluding
        self.each: dict[str, tuple[Spent, int]] = {}
        """What it has spent, in how many charges."""
        self._cost: tuple[bytes, Spent] = b"", Spent()

    def charge(self, plan: Plan, name: str, parts: Mapping[str, Any]) -> None:
        """Charge a participant's part of a sum, if it holds anything of its clients."""
        fields = [field for group in self.noise.norms for field in group]
        if any(np.any(parts[field]) for field in fields):
            self._charge(name, self._release(plan))

    def before(self, number: int, chosen: Chosen, once: bool) -> None:
        """A run that goes on in another process: rounds before it count for all who were chosen."""
        if not self.each:
            for earlier in range(1, min(2, number) if once else number):
                for name in chosen(earlier):
                    self._charge(name, self.noise.release)

    def _charge(self, name: str, spent: Spent) -> None:
        before, charges = self.each.get(name, (Spent(), 0))
        self.each[name] = before + spent, charges + 1

    def _release(self, plan: Plan) -> Spent:
        if self._cost[0] != plan.digest:
            noise = self.noise
            spent = release_of_plan(plan, noise.norms, noise.nonnegative, noise.alone, self.colluding)
            self._cost = plan.digest, spent
        return self._cost[1]

    def written(self) -> tuple[tuple[Account, ...], tuple[tuple[int, int], ...]]:
        """For a file: the accounts, each once, and the places of participants and of their accounts."""
        places = {name: place for place, name in enumerate(self.names)}
        accounts: dict[Account, int] = {}
        holders = []
        for name, (spent, charges) in self.each.items():
            account = (spent.rho, spent.eta, spent.pure, spent.releases, charges)
            holders.append((places[name], accounts.setdefault(account, len(accounts))))
        return tuple(accounts), tuple(holders)

    def read(self, accounts: Sequence[Account], holders: Sequence[tuple[int, int]]) -> None:
        """The same again; what is not of these participants is left out."""
        kept = [(Spent(*account[:4]), account[4]) for account in accounts]
        for place, account in holders:
            if 0 <= place < len(self.names) and 0 <= account < len(kept):
                self.each[self.names[place]] = kept[account]

    def stated(self) -> dict[str, Any]:
        """What the participant that gave away most would say."""
        delta = self.noise.budget.delta
        name = max(self.each, key=lambda one: self.each[one][0].rho, default="")
        spent, charges = self.each.get(name, (Spent(), 0))
        return {"epsilon": spent.epsilon(delta), "delta": delta, "participant": name, "charges": charges}
