"""The ledgers of simulated participants: as deployed, each release is charged to the clients whose data is in it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import astuple
from typing import Any

import numpy as np

from fedrec.core.disclosed import Account
from fedrec.data.ragged import Int64
from fedrec.privacy.guard import release_of_plan
from fedrec.privacy.spending import Spent
from fedrec.privacy.summed import SumNoise
from fedrec.secure.plan import Plan

Chosen = Callable[[int], Int64]
"""Positions of the clients that take part in a round."""


class Ledgers:
    """What has been given away about each client, in memory; its participant keeps the account."""

    def __init__(self, holders: Sequence[str], noise: SumNoise, colluding: float) -> None:
        """``holders``: the participant of each client."""
        self.holders, self.noise, self.colluding = holders, noise, colluding
        self.accounts = np.zeros((len(holders), len(astuple(Spent()))))  # [clients, 4]
        self.charges = np.zeros(len(holders), np.int64)
        self._cost: tuple[bytes, Spent] = b"", Spent()

    def charge(self, plan: Plan, clients: Int64) -> None:
        """Charge what these clients have in a sum."""
        if self._cost[0] != plan.digest:
            noise = self.noise
            spent = release_of_plan(plan, noise.norms, noise.nonnegative, noise.alone, self.colluding)
            self._cost = plan.digest, spent
        self._charge(clients, self._cost[1])

    def before(self, number: int, chosen: Chosen, once: bool) -> None:
        """A run that goes on in another process: rounds before it count for all who were chosen."""
        for earlier in range(1, min(2, number) if once else number):
            self._charge(chosen(earlier), self.noise.release)

    def _charge(self, clients: Int64, spent: Spent) -> None:
        self.accounts[clients] += astuple(spent)
        self.charges[clients] += 1

    def written(self) -> tuple[tuple[Account, ...], tuple[tuple[int, int], ...]]:
        """For a file: the accounts, each once, and the places of clients and of their accounts."""
        charged = np.flatnonzero(self.charges)
        rows = np.column_stack([self.accounts[charged], self.charges[charged]])
        found, places = np.unique(rows, axis=0, return_inverse=True)
        accounts = tuple((rho, eta, pure, int(releases), int(n)) for rho, eta, pure, releases, n in found.tolist())
        return accounts, tuple(zip(charged.tolist(), places.ravel().tolist(), strict=True))

    def read(self, accounts: Sequence[Account], holders: Sequence[tuple[int, int]]) -> None:
        """The same again; what is not of these clients is left out."""
        for client, account in holders:
            if 0 <= client < len(self.holders) and 0 <= account < len(accounts):
                *spent, self.charges[client] = accounts[account]
                self.accounts[client] = spent

    def stated(self) -> dict[str, Any]:
        """What the participant with the client of whom most was given away would say."""
        delta = self.noise.budget.delta
        client = int(np.argmax(self.accounts[:, 0]))
        rho, eta, pure, releases = self.accounts[client].tolist()
        return {
            "epsilon": Spent(rho, eta, pure, int(releases)).epsilon(delta),
            "delta": delta,
            "participant": self.holders[client] if self.charges[client] else "",
            "charges": int(self.charges[client]),
        }
