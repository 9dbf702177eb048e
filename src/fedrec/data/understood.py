"""What was understood of a file: said in the first lines of a run, so that a wrong reading is seen at once."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

UNITS = ((10**17, 10**9, "nanoseconds"), (10**14, 10**6, "microseconds"), (10**11, 10**3, "milliseconds"))
"""Numbers above the first are so many to a second."""
ORDER_ONLY = 10**8
"""Numbers that all stay below this are an order, not moments."""


@dataclass(frozen=True)
class Understood:
    """How a person's own data was read."""

    source: str
    """The file, or 'DataFrame'."""
    form: str
    """Its format, for people: 'CSV with ;', 'Parquet'."""
    rows: int
    """Rows found, unreadable ones included."""
    columns: tuple[tuple[str, str], ...] = ()
    """Meaning and name of each column that is used."""
    ignored: tuple[str, ...] = ()
    """Columns that are not used."""
    times: str | None = None
    """How times are written, or None where there are none."""
    encoding: str = "utf-8"
    unreadable: int = 0
    """Rows left out because they cannot be read."""
    unreadable_at: tuple[str, ...] = ()
    """What is wrong with the first of them."""
    decimal_comma: bool = False
    least_rating: float | None = None
    """Rows with a lower rating are no interactions; None: those of 0 or less are none."""
    below_rating: int = 0
    """Rows left out for their rating."""
    merged: int = 0
    """Repeats of a user-item pair that were merged."""
    kept_repeat: str = "last"
    """Which of several rows of a pair stays: 'last' or 'earliest'."""
    split: bool = False
    """Whether the data came ready split."""
    filters: tuple[str, ...] = ()
    """Filters on users, for people."""

    def lines(self) -> list[str]:
        """A few lines for people."""
        used = ", ".join(what if what == name else f"{what} = {name}" for what, name in self.columns)
        ignored = f"; not used: {_listed(self.ignored)}" if self.ignored else ""
        found = [f"{self.source}: {self.form}, {self.rows} rows" + (f"; {used}{ignored}" if used else ignored)]
        if self.encoding != "utf-8":
            found.append(f"{self.source} is not UTF-8: read as {self.encoding}")
        if self.decimal_comma:
            found.append("ratings have decimal commas")
        found.append(self._order())
        if self.unreadable:
            found.append(f"{self.unreadable} rows cannot be read and are left out, the first: {self.unreadable_at[0]}")
            found.extend(f"also {more}" for more in self.unreadable_at[1:])
        return found + self.passed_over() + list(self.filters)

    def passed_over(self) -> list[str]:
        """Rows that are no interactions of their own."""
        rule = "of 0 or less" if self.least_rating is None else f"below {self.least_rating:g}"
        below = (
            [f"{self.below_rating} rows with a rating {rule} do not count as interactions"] if self.below_rating else []
        )
        merged = [f"{self.merged} repeats of a user-item pair merged, the {self.kept_repeat} kept"]
        return below + (merged if self.merged else [])

    def _order(self) -> str:
        if self.split:
            return "split as given (train, valid, test)"
        if self.times:
            return f"time order from {self.times}"
        return "no times: held-out items are drawn at random, and sequence models read histories in random order"


def _listed(names: tuple[str, ...], most: int = 8) -> str:
    return ", ".join(names[:most]) + (f" and {len(names) - most} more" if len(names) > most else "")


def unit_of(values: NDArray[np.int64] | NDArray[np.float64]) -> int:
    """How many of these numbers make a second."""
    most = max(abs(float(values.max())), abs(float(values.min())))
    return next((per_second for above, per_second, _ in UNITS if most > above), 1)


def unit_name(per_second: int) -> str:
    """The name of that unit."""
    return next((name for _, per, name in UNITS if per == per_second), "seconds")
