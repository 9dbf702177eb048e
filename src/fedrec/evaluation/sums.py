"""Metrics as sums with a count, so that they add up anywhere: over blocks, nodes and rounds."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from fedrec.evaluation.metrics import Float64

ROUNDING = 1e-9
"""How far a sum may lie above the number of users because of rounding."""


@dataclass(frozen=True)
class MetricSums:
    """Sums over the users that were evaluated. This is what a node sends; no user's own value leaves it."""

    sums: dict[str, float] = field(default_factory=dict)
    count: int = 0
    """How many users were evaluated; users without a target do not count."""

    @classmethod
    def from_values(cls, per_user: Mapping[str, Float64]) -> MetricSums:
        """Add up the values of each user (:func:`fedrec.evaluation.evaluating.evaluate`), leaving out NaN users."""
        if not per_user:
            return cls()
        evaluated = ~np.isnan(next(iter(per_user.values())))
        return cls({name: float(values[evaluated].sum()) for name, values in per_user.items()}, int(evaluated.sum()))

    def fault(self, names: Collection[str], most: int) -> str | None:
        """Why these cannot be sums of these metrics over at most ``most`` users; None where they can.

        Every metric of a user lies between 0 and 1, so its sum lies between 0 and the number of users.
        """
        if not 0 <= self.count <= most:
            return f"metric sums of {self.count} users, but there are only {most}"
        if self.sums.keys() != set(names) and (self.sums or self.count):
            odd = sorted(self.sums.keys() ^ set(names))
            return f"metric sums that are not the protocol's ({', '.join(repr(name[:40]) for name in odd[:3])})"
        for name, total in self.sums.items():
            if not 0.0 <= total <= self.count * (1 + ROUNDING):
                return f"the sum {total:.6g} of {name} over {self.count} users"
        return None

    def __add__(self, other: MetricSums) -> MetricSums:
        # empty sums come from blocks in which nobody was evaluated: neutral
        names = {**self.sums, **other.sums}
        for part in (self, other):
            if part.count and part.sums.keys() != names.keys():
                raise ValueError(f"sums of different metrics: {sorted(self.sums)} and {sorted(other.sums)}")
        added = {name: self.sums.get(name, 0.0) + other.sums.get(name, 0.0) for name in names}
        return MetricSums(added, self.count + other.count)

    def means(self) -> dict[str, float]:
        """The mean of each metric over the users evaluated; NaN where nobody was.

        ``F1@k!`` is the harmonic mean of mean Precision and mean Recall (:mod:`fedrec.evaluation.published`).
        """
        means = {name: total / self.count if self.count else float("nan") for name, total in self.sums.items()}
        for name in [name for name in means if name.startswith("F1@") and name.endswith("!")]:
            cut = name[3:-1]
            precision, recall = means[f"Precision@{cut}"], means[f"Recall@{cut}"]
            both = precision + recall
            means[name] = 2.0 * precision * recall / both if both else 0.0
        return means

    def as_dict(self) -> dict[str, Any]:
        """Plain values, for a message or a file."""
        return {"count": self.count, "sums": dict(self.sums)}

    @classmethod
    def from_dict(cls, plain: Mapping[str, Any]) -> MetricSums:
        """Back from :meth:`as_dict`."""
        return cls({str(name): float(total) for name, total in plain["sums"].items()}, int(plain["count"]))
