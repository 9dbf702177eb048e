"""What a broken law says: which law, which method, what differed."""

from __future__ import annotations

from typing import Any

import numpy as np

from fedrec.core.loop import Progress
from fedrec.core.state import flatten

METRIC_STEP = 1e-9
LOSS_STEP = 1e-4
STATE_STEP = 2e-4
"""Arrays of two runs that add floats in another order may differ by this much, relative to numbers above 1."""


class LawBroken(Exception):
    """A method breaks a law."""

    def __init__(self, law: str, method: str, difference: str) -> None:
        super().__init__(f"{method} breaks law {law}: {difference}")
        self.law, self.method, self.difference = law, method, difference


class Comparison:
    """Compares on behalf of one law and one method; a difference raises :class:`LawBroken`."""

    def __init__(self, law: str, method: str) -> None:
        self.law, self.method = law, method

    def broken(self, difference: str) -> LawBroken:
        return LawBroken(self.law, self.method, difference)

    def metrics(self, left: Progress, right: Progress, between: str) -> None:
        """Equal metrics in every round, and losses but for the order in which they were added up."""
        if len(left.records) != len(right.records):
            raise self.broken(f"{len(left.records)} rounds, and {len(right.records)} {between}")
        for one, other in zip(left.records, right.records, strict=True):
            if not abs(one.loss - other.loss) <= LOSS_STEP * max(1.0, abs(one.loss)):
                raise self.broken(f"the loss of round {one.round} is {one.loss:.8g}, and {other.loss:.8g} {between}")
            for part in ("valid", "test"):
                mine, theirs = getattr(one, part) or {}, getattr(other, part) or {}
                if set(mine) != set(theirs):
                    raise self.broken(f"round {one.round} has other {part} metrics {between}")
                for name, value in mine.items():
                    if not abs(value - theirs[name]) <= METRIC_STEP:
                        raise self.broken(
                            f"{part} {name} of round {one.round} is {value:.6g}, and {theirs[name]:.6g} {between}"
                        )

    def states(self, left: Any, right: Any, between: str, step: float = STATE_STEP) -> None:
        """The same arrays, within ``step``."""
        mine, shape = flatten(left)
        theirs, other_shape = flatten(right)
        if shape != other_shape:
            raise self.broken(f"the state has other parts {between}")
        for name in mine:
            self.arrays(mine[name], theirs[name], f"state {name.strip('/').replace('/', '.')}", between, step)

    def arrays(self, mine: Any, theirs: Any, what: str, between: str, step: float = 0.0) -> None:
        """Equal numbers, within ``step`` relative to numbers above 1; ``step`` 0 is bit for bit."""
        if mine.shape != theirs.shape or mine.dtype != theirs.dtype:
            raise self.broken(
                f"{what} is {mine.dtype}{list(mine.shape)}, and {theirs.dtype}{list(theirs.shape)} {between}"
            )
        if mine.dtype.kind not in "fc":
            unequal = mine != theirs
        elif step:
            unequal = ~np.isclose(mine, theirs, rtol=step, atol=step, equal_nan=True)
        else:
            unequal = (mine != theirs) & ~(np.isnan(mine) & np.isnan(theirs))
        if not np.any(unequal):
            return
        place = np.unravel_index(int(np.argmax(unequal)), mine.shape) if mine.ndim else ()
        at = f" at {[int(p) for p in place]}" if place else ""
        count = f"; {int(np.sum(unequal))} of {mine.size} numbers differ" if mine.size > 1 else ""
        raise self.broken(f"{what}{at} is {mine[place]:.6g}, and {theirs[place]:.6g} {between}{count}")
