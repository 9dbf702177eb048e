"""Who speaks in which step when some fall silent, and what that costs in bytes, without running the protocol."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fedrec.data.ragged import Int64
from fedrec.secure.failures import TooFew
from fedrec.secure.graph import fewest_in_a_row
from fedrec.secure.identity import SIGNATURE_BYTES
from fedrec.secure.layout import Layout
from fedrec.secure.masks import SECRET_BYTES
from fedrec.secure.messages import ENTRY, ENTRY_BYTES, HEADER, PLACE, Advertisement, Kind, Unmasking, list_bytes
from fedrec.secure.plan import Plan
from fedrec.secure.shares import FINGERPRINT_BYTES

Dropouts = Mapping[int, Kind]
"""The step from which on a member (by its place) is silent; members that are not named stay to the end."""

SIGNED = HEADER.size + SIGNATURE_BYTES
STEPS = ("invite", "advertise", "share", "input", "confirm", "unmask")


@dataclass(frozen=True)
class Traffic:
    """Bytes of each member in each step."""

    upload: Int64  # [members, 6]
    download: Int64  # [members, 6]


@dataclass(frozen=True)
class Course:
    """One attempt from start to end."""

    plan: Plan
    spoke: NDArray[np.bool_]  # [5, members]
    failed: TooFew | None = None
    """Why the protocol ends without a sum, where it does."""

    @staticmethod
    def of(plan: Plan, dropouts: Dropouts) -> Course:
        """The attempt with these dropouts; :class:`TooFew` where the protocol would end without a sum."""
        course = Course.tried(plan, dropouts)
        if course.failed is not None:
            raise course.failed
        return course

    @staticmethod
    def tried(plan: Plan, dropouts: Dropouts) -> Course:
        """The same, with or without a sum.

        A member with fewer than t neighbours left in a step falls silent by itself, as in the protocol.
        """
        n, rules = len(plan.members), plan.rules
        silent = np.full(n, 5)
        for place, kind in dropouts.items():
            silent[place] = kind
        spoke = np.zeros((5, n), bool)
        spoke[0] = silent > 0
        for step in range(1, 5):
            left = spoke[step - 1]
            if step <= 3 and left.sum() < rules.least_survivors:
                return Course(plan, spoke, TooFew(f"{Kind(step - 1).name.lower()}: {left.sum()} members are left"))
            spoke[step] = left & (silent > step)
            if step <= 2:
                spoke[step] &= left[plan.table].sum(axis=1) >= rules.threshold
            elif step == 3 and fewest_in_a_row(plan.circle, rules.neighbours, left) < rules.window:
                return Course(plan, spoke, TooFew("too many in a row on the circle are gone"))
            elif step == 4 and left[plan.committee].sum() < rules.quorum:
                few = TooFew("too few of the committee are left", repeat=False)  # those that are have signed
                return Course(plan, spoke, few)
        course = Course(plan, spoke)
        short = spoke[Kind.UNMASK][plan.table].sum(axis=1) < rules.threshold
        if (course._unrevealed & short).any():
            few = TooFew("a secret of a silent member has too few shares left", repeat=False)
            return replace(course, failed=few)
        return course

    @property
    def _unrevealed(self) -> NDArray[np.bool_]:
        """Who is silent at the end, and who is gone with a mask that a silent one has: their secrets are in shares."""
        _, shared, summed, _, answered = self.spoke
        silent = summed & ~answered
        return np.asarray(silent | (shared & ~summed & silent[self.plan.table].any(axis=1)))

    @property
    def dropouts(self) -> Dropouts:
        """Who fell silent when, those included that did so for want of neighbours."""
        steps = self.spoke.sum(axis=0)
        return {int(place): Kind(int(steps[place])) for place in np.flatnonzero(steps < len(self.spoke))}

    @property
    def survivors(self) -> Int64:
        """Places of those in the sum, or whose vectors left for one that failed."""
        return np.flatnonzero(self.spoke[Kind.INPUT])

    @property
    def restored(self) -> int:
        """How many secrets the server must put together from shares."""
        return int(self._unrevealed.sum())

    def traffic(self) -> Traffic:
        """The bytes of every message, as the protocol sends them."""
        plan, spoke, table = self.plan, self.spoke, self.plan.table
        near = spoke[:, table].sum(axis=2)  # [5, members]
        dropped = (spoke[Kind.SHARE] & ~spoke[Kind.INPUT])[table].sum(axis=1)
        sent = np.zeros((len(plan.members), 6), np.int64)
        sent[:, 1] = SIGNED + Advertisement.SIZE
        sent[:, 2] = SIGNED + FINGERPRINT_BYTES + near[Kind.ADVERTISE] * ENTRY.size
        sent[:, 3] = SIGNED + plan.masked_bytes + SIGNATURE_BYTES
        sent[:, 4] = SIGNED
        alive, gone = near[Kind.INPUT] * Unmasking.ALIVE.size, dropped * Unmasking.GONE.size
        sent[:, 5] = SIGNED + SECRET_BYTES + PLACE.size + alive + gone
        sent[:, 1:] *= spoke.T
        got = np.zeros_like(sent)
        got[:, 0] = len(plan.to_bytes())
        got[:, 2] = near[Kind.ADVERTISE] * (SIGNED + Advertisement.SIZE) * spoke[Kind.ADVERTISE]
        lists = list_bytes(len(plan.members))
        got[:, 3] = (lists + near[Kind.SHARE] * ENTRY_BYTES) * spoke[Kind.SHARE]
        got[:, 4] = (lists + near[Kind.INPUT] * SIGNATURE_BYTES) * spoke[Kind.INPUT]
        got[:, 5] = spoke[Kind.CONFIRM][plan.committee].sum() * SIGNED * spoke[Kind.CONFIRM]
        return Traffic(sent, got)


@dataclass
class Costs:
    """What the cohorts of a round cost together."""

    cohorts: int = 0
    repeated: int = 0
    smallest: int = 0
    steps: Any = field(default_factory=lambda: np.zeros((2, len(STEPS))))
    seconds: dict[str, float] = field(default_factory=lambda: {"clients": 0.0, "server": 0.0})
    lost: list[Course] = field(default_factory=list)
    """Attempts that were simulated, of whose sums nothing was used; vectors may have left for them."""

    def add(self, size: int, traffic: Traffic | None = None, seconds: Mapping[str, float] | None = None) -> None:
        """One more cohort, with so many contributions."""
        self.smallest = min(self.smallest, size) if self.cohorts else size
        self.cohorts += 1
        if traffic is not None:
            self.steps += traffic.upload.sum(0), traffic.download.sum(0)
        for who, spent in (seconds or {}).items():
            self.seconds[who] += spent

    def as_dict(self, clients: int, layout: Layout, plain: float) -> dict[str, Any]:
        """For the record: bytes are means per client in the sum."""
        each = self.steps / max(1, clients)
        return {
            "cohorts": self.cohorts,
            "smallest_cohort": self.smallest,
            "repeated": self.repeated,
            "bits": layout.bits,
            "bytes": {
                way: dict(zip(STEPS, each[i].tolist(), strict=True)) for i, way in enumerate(("upload", "download"))
            },
            "plain_upload": plain,
            "seconds": dict(self.seconds),
        }
