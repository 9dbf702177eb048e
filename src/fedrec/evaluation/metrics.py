"""The metrics: what they are called and how they follow from expected positions.

Every metric is its expected value over a uniformly random order of items with equal scores, so a scorer that
knows nothing gets exactly chance. Two arrays per user carry all that is needed (``p`` counts positions from
zero):

- ``hit[u, p]``: the probability that position ``p`` holds a target. Precision, Recall, F1 and NDCG are linear
  in it, hence exact.
- ``first[u, p]``: the probability that the *first* target stands at ``p``. HR and MRR follow from it.

With ``n`` targets and the list cut after ``k``:

=============  ==========================================================================
HR@k           ``sum first[p]``: at least one target among the first k
MRR@k          ``sum first[p] / (p + 1)``
Precision@k    ``sum hit[p] / k``
Recall@k       ``sum hit[p] / n``
F1@k           ``2 * sum hit[p] / (k + n)``, the harmonic mean of the two above
NDCG@k         ``sum hit[p] / log2(p + 2)`` over the same sum for ``min(k, n)`` leading targets
=============  ==========================================================================
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from fedrec.data.ragged import Int64
from fedrec.errors import BadInput, unknown

Float64 = NDArray[np.float64]

KINDS = ("HR", "NDCG", "Recall", "Precision", "F1", "MRR")
CUTS = (5, 10, 20)
PUBLISHED = ("F1", "MRR", "NDCG")
"""Kinds that exist in a published, deviating form as well (:mod:`fedrec.evaluation.published`)."""

_NAME = re.compile(r"(?P<kind>[A-Za-z0-9]+)@(?P<cut>[1-9]\d*)(?:/(?P<sampled>[1-9]\d*)|(?P<published>!))?")


@dataclass(frozen=True)
class Metric:
    """One metric, taken apart from its name: ``HR@10``, ``HR@10/99`` or ``MRR@10!``."""

    kind: str
    cut: int
    """k: how much of the list counts."""
    sampled: int = 0
    """How many sampled candidates the targets are ranked among; 0 ranks all items."""
    published: bool = False
    """Computed as FedCIA's public code does, not as defined above."""

    @property
    def name(self) -> str:
        return f"{self.kind}@{self.cut}" + (f"/{self.sampled}" if self.sampled else "!" if self.published else "")


def parse(name: str) -> Metric:
    """The metric of this name.

    >>> parse("NDCG@20/99")
    Metric(kind='NDCG', cut=20, sampled=99, published=False)
    """
    found = _NAME.fullmatch(name)
    known = KINDS if found is None or found["published"] is None else PUBLISHED
    if found is None:
        raise BadInput(f"{name!r} is not a metric; write KIND@K, KIND@K/99 for sampled candidates, e.g. HR@10/99")
    if found["kind"] not in known:
        raise unknown("metric", found["kind"], known)
    return Metric(found["kind"], int(found["cut"]), int(found["sampled"] or 0), found["published"] is not None)


@dataclass(frozen=True)
class MetricSet:
    """The metrics that a protocol computes, by name."""

    names: tuple[str, ...]

    @classmethod
    def standard(cls, candidates: int = 0, extra: tuple[str, ...] = ()) -> MetricSet:
        """All kinds at 5, 10 and 20 over the full ranking, and among ``candidates`` where there are any."""
        full = tuple(f"{kind}@{cut}" for cut in CUTS for kind in KINDS)
        sampled = tuple(f"{name}/{candidates}" for name in full) if candidates else ()
        return cls(full + sampled + extra)

    @cached_property
    def metrics(self) -> tuple[Metric, ...]:
        return tuple(parse(name) for name in self.names)

    @property
    def full(self) -> tuple[Metric, ...]:
        return tuple(m for m in self.metrics if not m.sampled and not m.published)

    @property
    def sampled(self) -> tuple[Metric, ...]:
        return tuple(m for m in self.metrics if m.sampled)

    @property
    def published(self) -> tuple[Metric, ...]:
        return tuple(m for m in self.metrics if m.published)


@dataclass(frozen=True)
class Positions:
    """Where targets may stand, in expectation over the order of equal scores."""

    hit: Float64  # [users, depth] P(position holds a target)
    first: Float64  # [users, depth] P(position holds the first target)
    n_targets: Int64  # [users]


def discounts(depth: int) -> Float64:
    """DCG's weight of each position: ``1 / log2(p + 2)``."""
    return np.asarray(1.0 / np.log2(np.arange(depth) + 2.0))


def values(positions: Positions, metrics: tuple[Metric, ...]) -> dict[str, Float64]:
    """The metrics of each user ``[users]``; NaN for users without a target."""
    depth = positions.hit.shape[1]
    rank = np.arange(1, depth + 1)
    weight = discounts(depth)
    n = positions.n_targets.astype(np.float64)
    hits = np.cumsum(positions.hit, axis=1)
    gain = np.cumsum(positions.hit * weight, axis=1)
    found = np.cumsum(positions.first, axis=1)
    reciprocal = np.cumsum(positions.first / rank, axis=1)
    ideal = np.concatenate([[np.nan], np.cumsum(weight)])
    divisor = np.where(n > 0, n, np.nan)  # no target: nothing to divide by, hence NaN
    of_kind: dict[str, Callable[[int], Float64]] = {
        "HR": lambda k: found[:, k - 1],
        "MRR": lambda k: reciprocal[:, k - 1],
        "Precision": lambda k: hits[:, k - 1] / k,
        "Recall": lambda k: hits[:, k - 1] / divisor,
        "F1": lambda k: 2.0 * hits[:, k - 1] / (k + n),
        "NDCG": lambda k: gain[:, k - 1] / ideal[np.minimum(positions.n_targets, k)],
    }
    return {metric.name: np.where(n > 0, of_kind[metric.kind](metric.cut), np.nan) for metric in metrics}


def one_target(greater: Int64, tied: Int64, present: NDArray[np.bool_], depth: int) -> Positions:
    """Positions of a single target with ``greater`` items before it and ``tied`` (itself included) equal."""
    place = np.arange(depth)[None, :]
    start, size = greater[:, None], np.maximum(tied, 1)[:, None]
    inside = (place >= start) & (place < start + size) & present[:, None]
    hit = inside / size  # [users, depth]: every place of the tied group is as likely as any other
    return Positions(hit, hit, present.astype(np.int64))


def of_counts(
    greater: Int64, tied: Int64, present: NDArray[np.bool_], metrics: tuple[Metric, ...]
) -> dict[str, Float64]:
    """The metrics of users with one target each: ``greater`` items before it and ``tied``, itself included, level.

    Where nothing is tied the position is certain and every metric is looked up; expectations are taken for the rest.
    """
    depth = max([metric.cut for metric in metrics], default=0)
    place = np.where(present & (tied == 1), np.minimum(greater, depth), depth + 1)  # the last: not certain
    gain, rank = discounts(depth), 1.0 / np.arange(1, depth + 1)
    level = np.flatnonzero(present & (tied != 1))
    expected = values(one_target(greater[level], tied[level], present[level], depth), metrics) if len(level) else {}
    result: dict[str, Float64] = {}
    for metric in metrics:
        k = metric.cut
        at = np.zeros(depth + 2)  # the metric's value at each position
        share = {"HR": 1.0, "Precision": 1.0 / k, "Recall": 1.0, "F1": 2.0 / (k + 1.0)}.get(metric.kind)
        at[:k] = share if share is not None else (rank if metric.kind == "MRR" else gain)[:k]
        at[-1] = np.nan
        value = at[place]
        if len(level):
            value[level] = expected[metric.name]
        result[metric.name] = value
    return result


def first_of_group(start: Int64, size: Int64, relevant: Int64, depth: int) -> Float64:
    """``[users, depth]`` P(the first target stands at p), for the first tied group that holds a target.

    The group takes ``size`` places from ``start``, ``relevant`` of them targets, in uniformly random order:
    given that none of the first ``i`` places holds one, the next does with probability
    ``relevant / (size - i)`` (the negative hypergeometric distribution).
    Users with no relevant entry get zero.
    """
    first = np.zeros((len(start), depth))
    missed = np.ones(len(start))  # P(no target so far)
    for place in range(depth):
        offset = place - start
        inside = (offset >= 0) & (offset < size) & (relevant > 0)
        now = np.where(inside, relevant / np.maximum(size - offset, 1), 0.0)
        now = np.minimum(now, 1.0)  # when only targets are left one of them must come
        first[:, place] = missed * now
        missed *= 1.0 - now
    return first
