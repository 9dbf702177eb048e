"""Statistics over seeds and users: what a table may claim.

Two questions, two tests. *Would another seed give the same winner?* A paired t-test over seeds. *Would other
users?* A paired permutation test over users. Several comparisons in one table are corrected by Holm's method.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np

from fedrec import keyed
from fedrec.evaluation.metrics import Float64

MIN_SEEDS = 3
FLIPS = 9999
_NORMAL_FROM = 20_000  # users; from here on the permutation distribution is normal for all purposes


@dataclass(frozen=True)
class Summary:
    """A metric over seeds."""

    mean: float
    spread: float
    """Sample standard deviation (n - 1); NaN for a single seed, which has none."""
    count: int

    def __str__(self) -> str:
        return f"{self.mean:.4f}" if self.count < 2 else f"{self.mean:.4f} ± {self.spread:.4f}"


@dataclass(frozen=True)
class Comparison:
    """One method against another on one metric."""

    method: str
    against: str
    difference: float
    """Mean over seeds and users of method minus against."""
    low: float
    high: float
    """95 % interval of the difference over users (normal)."""
    seeds: int
    users: int
    p_seeds: float | None
    """Paired t-test over seeds; None with fewer than three."""
    p_users: float
    """Paired permutation test over users, each user's difference averaged over seeds."""
    p_adjusted: float
    """``p_users`` after Holm's correction for all comparisons made together."""

    @property
    def significant(self) -> bool:
        """At 5 %, over users after correction, and over seeds where there are enough of them."""
        return self.p_adjusted < 0.05 and (self.p_seeds is None or self.p_seeds < 0.05)


def summarise(values: Sequence[float]) -> Summary:
    """Mean and sample standard deviation over seeds."""
    array = np.asarray(values, np.float64)
    spread = float(array.std(ddof=1)) if len(array) > 1 else float("nan")
    return Summary(float(array.mean()) if len(array) else float("nan"), spread, len(array))


def paired_over_seeds(left: Sequence[float], right: Sequence[float]) -> float | None:
    """Two-sided p of the paired t-test over seeds; None where there are fewer than three."""
    difference = np.asarray(left, np.float64) - np.asarray(right, np.float64)
    if len(difference) < MIN_SEEDS:
        return None
    if np.ptp(difference) == 0:  # no variation: the t statistic is 0/0 or infinite
        return 1.0 if difference[0] == 0 else 0.0
    from scipy import stats

    return float(stats.ttest_1samp(difference, 0.0).pvalue)


def paired_over_users(difference: Float64, seed: int = 0, flips: int = FLIPS) -> float:
    """Two-sided p of the mean paired difference ``[users]``, by random flips of the signs.

    Under the null hypothesis the two methods are exchangeable for each user, so each sign is a coin. Users
    without a target (NaN) are left out; users without a difference decide nothing.
    """
    own = difference[~np.isnan(difference)]
    own = own[own != 0.0]
    if len(own) == 0:
        return 1.0
    observed = abs(float(own.sum()))
    if len(own) >= _NORMAL_FROM:
        from scipy import stats

        return float(2.0 * stats.norm.sf(observed / np.sqrt(float((own**2).sum()))))
    numbers = keyed.numbers(seed, "permutation test")
    step = max(1, (1 << 21) // len(own))
    reached = 0
    for begin in range(0, flips, step):
        coins = numbers.integers(0, 2, (min(step, flips - begin), len(own)), dtype=np.int8)
        # a sum with flipped signs is the total less twice what was flipped; the margin absorbs rounding
        flipped = own.sum() - 2.0 * (coins @ own)
        reached += int(np.count_nonzero(np.abs(flipped) >= observed * (1.0 - 1e-9)))
    return (1 + reached) / (1 + flips)


def holm(p_values: Sequence[float]) -> list[float]:
    """Holm's step-down correction: the smallest of m values times m, the next times m - 1, never falling.

    >>> holm([0.01, 0.04, 0.03])
    [0.03, 0.06, 0.06]
    """
    adjusted = [1.0] * len(p_values)
    floor = 0.0
    for rank, index in enumerate(sorted(range(len(p_values)), key=lambda i: p_values[i])):
        floor = max(floor, min(1.0, p_values[index] * (len(p_values) - rank)))
        adjusted[index] = floor
    return adjusted


def compare(against: str, values: Mapping[str, Sequence[Float64]], seed: int = 0) -> list[Comparison]:
    """Every other method against one, corrected together.

    ``values[method]`` is one metric: for each seed the values of all users ``[users]``, the same users and
    seeds for all methods.
    """
    base = np.asarray(values[against])  # [seeds, users]
    found = []
    for method, own in values.items():
        if method == against:
            continue
        array = np.asarray(own)
        if array.shape != base.shape:
            raise ValueError(f"{method} has {array.shape} seeds and users, {against} {base.shape}: cannot pair them")
        found.append(_one(method, against, array - base, seed))
    adjusted = holm([comparison.p_users for comparison in found])
    return [replace(comparison, p_adjusted=p) for comparison, p in zip(found, adjusted, strict=True)]


def _one(method: str, against: str, difference: Float64, seed: int) -> Comparison:
    evaluated = ~np.isnan(difference)  # [seeds, users]
    taken = evaluated.any(axis=0)
    per_user = np.nansum(difference, axis=0)[taken] / evaluated.sum(axis=0)[taken]
    per_seed = [float(np.nanmean(row)) for row in difference if not np.isnan(row).all()]
    mean = float(per_user.mean()) if len(per_user) else float("nan")
    error = float(per_user.std(ddof=1) / np.sqrt(len(per_user))) if len(per_user) > 1 else float("nan")
    p_users = paired_over_users(per_user, seed)
    return Comparison(
        method=method,
        against=against,
        difference=mean,
        low=mean - 1.96 * error,
        high=mean + 1.96 * error,
        seeds=len(difference),
        users=len(per_user),
        p_seeds=paired_over_seeds(per_seed, [0.0] * len(per_seed)),
        p_users=p_users,
        p_adjusted=p_users,
    )
