"""What a node has given away about each of its clients, over all runs, and what its owner allows.

Every release is charged before it is sent. Uploads are charged once a round; where the same is asked for again and
would cost more than it was charged with, the difference is charged. What goes into a secure sum is charged whenever it
is made, under (run, round, attempt): each attempt is a release of its own, since others may open it without this node.
The account of a client is the sum of its charges; the node's is that of the client who gave away most.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Sequence
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
    summed: bool = False
    """Whether it went into a secure sum."""

    def uploads_of(self, run: str, round: int) -> bool:
        """Whether these are the uploads of a round."""
        return (self.run, self.round, self.summed) == (run, round, False)


@dataclass(frozen=True)
class Ledger:
    """Accounts of clients, by their keys, and the charges they are made of."""

    keys: U64  # [clients] ascending
    accounts: Float64  # [clients, 4] PARTS
    charges: tuple[Charge, ...] = ()

    @staticmethod
    def empty() -> Ledger:
        return Ledger(np.zeros(0, np.uint64), np.zeros((0, len(PARTS))))

    def find(self, run: str, round: int) -> Charge | None:
        """The charge of a round's uploads, if it was made."""
        return next((one for one in self.charges if one.uploads_of(run, round)), None)

    def charged(self, run: str, round: int, clients: U64, spent: Spent) -> Ledger:
        """With these clients' uploads of a round; what was charged already is not charged again."""
        before = self.find(run, round)
        more = spent if before is None else spent.beyond(before.spent)
        if not len(clients) or (before is not None and more == NOTHING):
            return self
        if before is None:
            return self._with(Charge(run, round, spent, len(clients), whose=whose(clients)), clients)
        dearest = Spent(*map(max, astuple(before.spent), astuple(spent)))
        dearer = replace(before, spent=dearest)
        charges = tuple(dearer if one is before else one for one in self.charges)
        return replace(self._added(clients, more), charges=charges)

    def summed(self, run: str, round: int, attempt: int, members: Sequence[U64], spent: Spent) -> Ledger:
        """With vectors that members put into an attempt at a secure sum, each with the data of these clients."""
        clients = np.unique(np.concatenate(members))
        made = Charge(run, round, spent, len(clients), whose=whose(clients), attempt=attempt, summed=True)
        return self._with(made, clients)

    def _with(self, made: Charge, clients: U64) -> Ledger:
        return replace(self._added(clients, made.spent), charges=(*self.charges, made))

    def _added(self, clients: U64, more: Spent) -> Ledger:
        """With more in these clients' accounts."""
        keys = np.union1d(self.keys, clients)
        accounts = np.zeros((len(keys), len(PARTS)))
        accounts[np.searchsorted(keys, self.keys)] = self.accounts
        accounts[np.searchsorted(keys, clients)] += [getattr(more, part) for part in PARTS]
        return Ledger(keys, accounts, self.charges)

    def answered(self, run: str, round: int) -> Ledger:
        """With a round's answer marked as stored."""
        marked = (replace(one, answered=True) if one.uploads_of(run, round) else one for one in self.charges)
        return replace(self, charges=tuple(marked))

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

    def allows(self, spent: Spent) -> bool:
        """Whether the budget allows what would be spent after a release."""
        return isinf(self.budget) or spent.epsilon(self.delta) <= self.budget

    def check_budget(self, spent: Spent) -> None:
        """Refuse a release after which this would be spent."""
        if not self.allows(spent):
            reached = spent.epsilon(self.delta)
            what = "without bound" if isinf(reached) else f"epsilon {reached:.4g}"
            raise Withheld(
                f"the privacy budget of this node is spent: another release would reach {what}, but its owner allows "
                f"{self.budget:g} at delta {self.delta:g}"
            )
