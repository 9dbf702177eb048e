"""What a run's uploads cost the node's users, against what the node's owner allows."""

from __future__ import annotations

import hashlib
from math import inf
from typing import Any

import numpy as np

from fedrec.core.method import Method
from fedrec.deploy.messages.letters import Ask
from fedrec.deploy.node.ledger import NodeLedger
from fedrec.deploy.node.share import NodeOptions
from fedrec.keyed import U64
from fedrec.privacy.accountant import local_release


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

    def allow(self) -> None:
        """Refuse a run that the owner does not want, before anything is prepared."""
        settings, bounded = self.method.settings, self.method.contribution()
        norm = settings.clip or (inf if bounded is None else bounded.norm)
        self.policy.check_run(settings.noise, norm)
        self.policy.check_budget(self.ledger.read())

    def charge(self, run: str, round: int, clients: U64, coordinates: int) -> None:
        """Charge the uploads of these clients; raises where the budget does not allow them."""
        spent, _ = local_release(self.method.settings, coordinates, self.method.contribution())
        self.ledger.charge(run, round, clients, spent)
