"""The node's ledger as a file: whole at every moment, with a checksum, for all runs of the node together."""

from __future__ import annotations

import json
from collections.abc import Iterator
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

    def charge(self, run: str, round: int, clients: U64, spent: Spent, attempt: int = 0) -> Charge | None:
        """Charge a release, unless it was charged before; raises where the owner's budget does not allow it, and
        where it was charged for other clients: who is not in that charge gave nothing away in this round."""
        with self._locked():
            before = self.read()
            made = before.find(run, round, attempt)
            if made is not None and made.whose not in ("", whose(clients)):
                raise Withheld(f"round {round} of this run was charged for other clients of this node")
            after = before.charged(run, round, clients, spent, attempt)
            if after is not before:
                self.policy.check_budget(after)
                self._write(after)
            return after.find(run, round, attempt)

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
