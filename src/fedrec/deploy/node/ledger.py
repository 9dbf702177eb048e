"""The node's ledger as a file: whole at every moment, with a checksum, for all runs of the node together."""

from __future__ import annotations

import json
import logging
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import asdict
from pathlib import Path

import numpy as np

from fedrec.core.state import expect
from fedrec.deploy.processes import one_at_a_time
from fedrec.keyed import U64
from fedrec.privacy.ledger import Charge, Ledger, OwnerPolicy, Withheld, whose
from fedrec.privacy.spending import Spent
from fedrec.runs.atomic import private_folder
from fedrec.runs.state_file import load_state, save_state

log = logging.getLogger("fedrec.deploy")

FILE = "ledger.safetensors"


class NodeLedger:
    """Charges releases before they are sent."""

    def __init__(self, folder: Path, policy: OwnerPolicy) -> None:
        self.path, self.policy = folder / FILE, policy

    def read(self) -> Ledger:
        """The ledger as it stands; a damaged one is an error, never a fresh start."""
        if not self.path.is_file():
            return Ledger.empty()
        found, about = load_state(self.path, expect(dict[str, np.ndarray]), "a node sends nothing without its ledger")
        charges = (Charge(**{**one, "spent": Spent(**one["spent"])}) for one in json.loads(about["charges"]))
        return Ledger(found["keys"], found["accounts"], tuple(charges))

    def charge(self, run: str, round: int, clients: U64, spent: Spent) -> Charge | None:
        """Charge the uploads of a round, unless that was done before; raises where the owner's budget does not allow
        it, and where it was done for other clients: who is not in that charge gave nothing away in this round."""
        with self._locked():
            before = self.read()
            made = before.find(run, round)
            if made is not None and made.whose not in ("", whose(clients)):
                raise Withheld(f"round {round} of this run was charged for other clients of this node")
            after = before.charged(run, round, clients, spent)
            if after is not before:
                self.policy.check_budget(after.spent())
                self._write(after)
            return after.find(run, round)

    def charge_sum(self, run: str, round: int, attempt: int, members: Mapping[str, U64], spent: Spent) -> set[str]:
        """Charge what members put into a secure sum to the clients whose data is in it, anew whenever it is made. Gives
        the members of whose clients the budget allows it, and raises where it allows nobody's."""
        with self._locked():
            before, allowed = self.read(), set(members)
            after = before.summed(run, round, attempt, list(members.values()), spent)
            try:
                self.policy.check_budget(after.spent())
            except Withheld as problem:
                allowed = {name for name in members if self.policy.allows(before.spent(members[name]) + spent)}
                if not allowed:
                    raise
                log.warning(
                    "%d of %d members stay out of a sum: %s", len(members) - len(allowed), len(members), problem
                )
                after = before.summed(run, round, attempt, [members[name] for name in sorted(allowed)], spent)
            self._write(after)
            return allowed

    def answered(self, run: str, round: int) -> None:
        """The answer is stored: from now on it may have been sent."""
        with self._locked():
            self._write(self.read().answered(run, round))

    def _write(self, ledger: Ledger) -> None:
        charges = json.dumps([asdict(one) for one in ledger.charges])
        save_state(self.path, {"keys": ledger.keys, "accounts": ledger.accounts}, {"charges": charges}, private=True)

    @contextmanager
    def _locked(self) -> Iterator[None]:
        private_folder(self.path.parent)
        with one_at_a_time(self.path.with_name(".ledger.lock")):
            yield
