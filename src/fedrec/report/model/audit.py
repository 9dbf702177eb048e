"""An audit's rows as one line a method: what one upload tells, and what a few dishonest clients can do.

Of an audit of secure sums: what a masked message tells, and what a sum does.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from statistics import fmean, stdev
from typing import Any

from fedrec.report.model.histories import ATTACKS

ITEM_ATTACKS = ("touched", "norms", "sign", "named")
"""Attacks on one upload; a method is given the best."""


@dataclass(frozen=True)
class Figure:
    """A mean over seeds and its deviation."""

    mean: float
    deviation: float | None = None

    @classmethod
    def of(cls, values: Iterable[float]) -> Figure | None:
        found = [value for value in values if value == value]
        return cls(fmean(found), stdev(found) if len(found) > 1 else None) if found else None


@dataclass(frozen=True)
class Summary:
    """One method."""

    method: str
    items_attack: str = ""
    """The attack that finds most items in one upload (of the first round)."""
    items: dict[str, Figure] = field(default_factory=dict)
    """Its precision and recall, and chance and popularity beside them."""
    membership: Figure | None = None
    """AUC of shadow models."""
    size: Figure | None = None
    """Rank correlation of the best guess of history sizes."""
    held_out: Figure | None = None
    """How often reported metrics name the held-out item of a node's only user; and a guess without them."""
    held_out_blind: Figure | None = None
    participant: Figure | None = None
    """AUC of a participant for the items of its nearest other."""
    participant_popular: Figure | None = None
    defence: str = "none"
    share: float = 0.0
    exposure: Figure | None = None
    exposure_defended: Figure | None = None
    exposure_adaptive: Figure | None = None
    cost: Figure | None = None
    """Share of validation NDCG@10 that the defence costs when nobody attacks; below zero: it helps."""
    cost_sampled: Figure | None = None
    """The same of HR@10/99, which moves less from seed to seed."""
    unread: frozenset[str] = frozenset()
    """Figures for which attacks were asked and no message had anything that they know."""


UNREAD = {"items": ITEM_ATTACKS, "membership": ("imia",), "held_out": ("metrics",)}
"""Which attacks a figure is from."""


def summarise(rows: Sequence[Any]) -> list[Summary]:
    """Methods in the order in which they were audited; of several shares the one nearest to 1 %. Not of secure sums."""
    return [_summary(name, own) for name, own in _by_method([row for row in _alone(rows) if not row.view])]


def summarise_sums(rows: Sequence[Any]) -> list[SumsSummary]:
    """Methods in the order in which they were audited; of secure sums alone."""
    return [_sums_summary(name, own) for name, own in _by_method([row for row in _alone(rows) if row.view])]


def _alone(rows: Sequence[Any]) -> list[Any]:
    """Without attacks that name whole histories, which have a table of their own."""
    return [row for row in rows if row.attack not in ATTACKS]


def _by_method(rows: list[Any]) -> list[tuple[str, list[Any]]]:
    return [(name, [r for r in rows if r.method == name]) for name in dict.fromkeys(r.method for r in rows)]


def _summary(method: str, rows: list[Any]) -> Summary:
    first = [r for r in rows if r.attack in ITEM_ATTACKS and r.rounds == 1 and "precision" in r.figures]
    scored = {name: Figure.of(_harmonic(r.figures) for r in first if r.attack == name) for name in ITEM_ATTACKS}
    attack = max((n for n in scored if scored[n] is not None), key=lambda n: scored[n].mean, default="")  # type: ignore[union-attr]
    wanted = ("precision", "recall", "chance", "popular_precision")
    items = {key: _mean(first, attack, key) for key in wanted} if attack else {}
    sizes = [r for r in rows if r.rounds == 1 and "size_rank" in r.figures]
    ranks = [rank for name in {r.attack for r in sizes} if (rank := _mean(sizes, name, "size_rank")) is not None]
    size = max(ranks, key=lambda rank: rank.mean, default=None)
    poisoned = [r for r in rows if "ER@10" in r.figures]
    share = min({r.share for r in poisoned}, key=lambda s: abs(s - 0.01), default=0.0)
    here = [r for r in poisoned if r.share == share]
    usual = next((r.defence for r in here if r.defence != "none"), "none")

    def exposure(defence: str, adaptive: bool) -> Figure | None:
        return Figure.of(
            r.figures["ER@10"] for r in here if r.attack == "boost" and r.defence == defence and r.adaptive == adaptive
        )

    return Summary(
        method, attack, {key: value for key, value in items.items() if value is not None},
        membership=_mean([r for r in rows if r.rounds == 1], "imia", "auc"),
        size=size,
        held_out=_mean(rows, "metrics", "precision"), held_out_blind=_mean(rows, "metrics", "blind_precision"),
        participant=_mean(rows, "mixture", "auc"), participant_popular=_mean(rows, "mixture", "popular_auc"),
        defence=usual, share=share,
        exposure=exposure("none", False),
        exposure_defended=exposure(usual, False) if usual != "none" else None,
        exposure_adaptive=exposure(usual, True),
        cost=_cost(here, usual, "NDCG@10"), cost_sampled=_cost(here, usual, "HR@10/99"),
        unread=frozenset(name for name, attacks in UNREAD.items() if _unread(rows, attacks)),
    )  # fmt: skip


def _unread(rows: list[Any], attacks: Sequence[str]) -> bool:
    asked = [row for row in rows if row.attack in attacks]
    return bool(asked) and not any(row.figures for row in asked)


def _mean(rows: list[Any], attack: str, name: str) -> Figure | None:
    return Figure.of(row.figures.get(name, float("nan")) for row in rows if row.attack == attack)


def _harmonic(figures: dict[str, float]) -> float:
    total = figures["precision"] + figures["recall"]
    return 2 * figures["precision"] * figures["recall"] / total if total else 0.0


def _cost(rows: list[Any], defence: str, metric: str) -> Figure | None:
    clean = {(r.defence, r.seed): r.figures[metric] for r in rows if not r.attack and metric in r.figures}
    seeds = {seed for name, seed in clean if name == defence}
    pairs = [(clean[("none", s)], clean[(defence, s)]) for s in seeds if clean.get(("none", s))]
    return None if defence == "none" else Figure.of(1 - guarded / plain for plain, guarded in pairs)


@dataclass(frozen=True)
class Told:
    """The most that any attack got in any round, over all seeds."""

    auc: float
    """Whether an item is a client's, either way round: farthest from 0.5, and above it."""
    whose: float
    """Who of the clients has an item; the same."""
    size: float
    """Rank correlation of guessed and true sizes."""


@dataclass(frozen=True)
class SumsSummary:
    """One method."""

    method: str
    message: Told
    sum: Told
    popular: float
    """AUC of the most popular items."""
    attacks: int
    """Guesses that were made of each kind."""


def _sums_summary(method: str, rows: list[Any]) -> SumsSummary:
    def values(view: str, name: str) -> list[float]:
        return [row.figures[name] for row in rows if row.view == view and name in row.figures]

    def told(view: str) -> Told:
        size = max(values(view, "size_rank"), default=float("nan"))
        return Told(_farthest(values(view, "auc")), _farthest(values(view, "whose")), size)

    popular = max(values("sum", "popular_auc"), default=float("nan"))
    return SumsSummary(method, told("message"), told("sum"), popular, len(values("message", "auc")))


def _farthest(values: Sequence[float]) -> float:
    return max((max(value, 1 - value) for value in values), default=float("nan"))
