"""What a node has given away about each of its clients, over all runs, and what its owner allows.

Every release is charged before it is sent, under (run, round, attempt), once; where the same is asked for again and
would cost more than it was charged with, the difference is charged. Each attempt at a sum is a release of its own,
since others may open it without this node. The account of a client is the sum of its charges; the node's is that of
the client who gave away most.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable
from dataclasses import astuple, dataclass, replace
from math import inf, isinf

import numpy as np
from numpy.typing import NDArray

from fedrec.core.fold import Float64
from fedrec.errors import BadInput
from fedrec.keyed import U64
from fedrec.privacy.spending import NOTHING, Spent

PARTS = ("rho", "eta", "pure", "releases")


class Withheld(BadInput):
    """What the node's owner does not allow, or what was answered before; the line may leave the node."""


@dataclass(frozen=True)
class Charge:
    """One round of one run."""

    run: str
    round: int
    spent: Spent
    clients: int
    answered: bool = False
    """Whether its answer was stored, and so may have been sent."""
    whose: str = ""
    """A digest of the keys of the clients it was made for; ledgers from before have none."""
    attempt: int = 0
    """Which attempt at a secure sum of the round."""


@dataclass(frozen=True)
class Ledger:
    """Accounts of clients, by their keys, and the charges they are made of."""

    keys: U64  # [clients] ascending
    accounts: Float64  # [clients, 4] PARTS
    charges: tuple[Charge, ...] = ()

    @staticmethod
    def empty() -> Ledger:
        return Ledger(np.zeros(0, np.uint64), np.zeros((0, len(PARTS))))

    def find(self, run: str, round: int, attempt: int = 0) -> Charge | None:
        """The charge of a round, if it was made."""
        wanted = (run, round, attempt)
        return next((one for one in self.charges if (one.run, one.round, one.attempt) == wanted), None)

    def charged(self, run: str, round: int, clients: U64, spent: Spent, attempt: int = 0) -> Ledger:
        """With a release of these clients' data; what was charged already is not charged again.

        What goes into one attempt of several cohorts counts as the dearest of them.
        """
        before = self.find(run, round, attempt)
        more = spent if before is None else spent.beyond(before.spent)
        if not len(clients) or (before is not None and more == NOTHING):
            return self
        keys = np.union1d(self.keys, clients)
        accounts = np.zeros((len(keys), len(PARTS)))
        accounts[np.searchsorted(keys, self.keys)] = self.accounts
        accounts[np.searchsorted(keys, clients)] += [getattr(more, part) for part in PARTS]
        if before is None:
            made = Charge(run, round, spent, len(clients), whose=whose(clients), attempt=attempt)
            return Ledger(keys, accounts, (*self.charges, made))
        dearest = Spent(*map(max, astuple(before.spent), astuple(spent)))
        dearer = replace(before, spent=dearest)
        return Ledger(keys, accounts, tuple(dearer if one is before else one for one in self.charges))

    def answered(self, run: str, round: int) -> Ledger:
        """With a round's answer marked as stored."""
        marked = tuple(
            replace(one, answered=True) if (one.run, one.round) == (run, round) else one for one in self.charges
        )
        return replace(self, charges=marked)

    def spent(self, clients: U64 | None = None) -> Spent:
        """The most that was given away about one of these clients, or about any."""
        rows: NDArray[np.float64] = self.accounts if clients is None else self.accounts[np.isin(self.keys, clients)]
        if not len(rows):
            return Spent()
        rho, eta, pure, releases = rows.max(0).tolist()
        return Spent(rho, eta, pure, int(releases))


def whose(clients: U64) -> str:
    """Names a set of clients, by their keys."""
    return hashlib.blake2b(np.sort(clients).tobytes(), digest_size=8).hexdigest()


@dataclass(frozen=True)
class OwnerPolicy:
    """What the owner of a node allows, whatever a server asks."""

    min_noise: float = 0.0
    """The least noise: its scale on each number of an upload, or its deviation in each number of a secure sum."""
    max_clip: float = inf
    """The largest norm of one client's upload, or of what one user adds to a secure sum."""
    budget: float = inf
    """The largest epsilon over all runs, for any client."""
    delta: float = 1e-6
    """The delta that the budget is meant at."""
    metrics: bool = False
    """Whether sums of metrics are sent in spite of limits. They carry no noise and nobody counts them, and a server
    that chooses the model can ask with them what is in a history."""

    @property
    def limits(self) -> bool:
        return self.min_noise > 0 or not isinf(self.max_clip) or not isinf(self.budget)

    @property
    def withholds_metrics(self) -> bool:
        return self.limits and not self.metrics

    def check_fields(self, method: str, telling: Iterable[str]) -> None:
        """Refuse uploads with fields that tell of the data and that nothing covers, where there are limits."""
        found = sorted(telling)
        if self.limits and found:
            raise Withheld(
                f"this node has limits, and {method} sends {', '.join(found)} as they are, without noise; secure sums "
                "add noise to them too"
            )

    def check_run(self, noise: float, norm: float) -> None:
        """Refuse a run that noises less or clips less; ``norm`` is infinite where nothing bounds it."""
        if noise < self.min_noise:
            raise Withheld(f"this node asks for noise of at least {self.min_noise:g}, but the run has {noise:g}")
        if norm > self.max_clip:
            had = "bounds nothing" if isinf(norm) else f"has {norm:g}"
            raise Withheld(f"this node allows contributions of norm {self.max_clip:g} at most, the run {had}")

    def check_budget(self, ledger: Ledger) -> None:
        """Refuse what would take the ledger beyond the budget; ``ledger`` is as it would be after the release."""
        if isinf(self.budget):
            return
        reached = ledger.spent().epsilon(self.delta)
        if reached > self.budget:
            what = "without bound" if isinf(reached) else f"epsilon {reached:.4g}"
            raise Withheld(
                f"the privacy budget of this node is spent: another release would reach {what}, but its owner allows "
                f"{self.budget:g} at delta {self.delta:g}"
            )
