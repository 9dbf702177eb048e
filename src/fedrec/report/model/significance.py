"""Which differences of a table would stand up with other users and other seeds."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from fedrec.errors import BadInput
from fedrec.evaluation import statistics
from fedrec.report.model.runs import FinishedRun

LEVEL = 0.05
Runs = Mapping[str, Sequence[FinishedRun]]
Pair = tuple[Sequence[FinishedRun], Sequence[FinishedRun]]
"""The runs of a method and of the one that it is held against, seed by seed."""


@dataclass(frozen=True)
class Verdict:
    """One method against another on one metric (:class:`fedrec.evaluation.statistics.Comparison`)."""

    against: str
    difference: float
    """Mean of method minus mean of ``against``, over the seeds that both have."""
    seeds: int
    p_seeds: float | None
    """Paired t-test over seeds; None with fewer than three."""
    p_users: float | None
    """Paired permutation test over users; None where no values of users were kept."""
    p_adjusted: float | None
    """``p_users``, or ``p_seeds`` where there is none, after Holm's correction; None where neither is."""
    significant: bool

    @property
    def better(self) -> bool:
        return self.significant and self.difference > 0

    def turned(self, method: str) -> Verdict:
        """The same seen from the other side: ``method`` is the one this verdict was about."""
        return replace(self, against=method, difference=-self.difference)


def shared_seeds(one: Sequence[FinishedRun], other: Sequence[FinishedRun]) -> tuple[int, ...]:
    """The seeds that two methods can be paired by."""
    return tuple(sorted({run.seed for run in one} & {run.seed for run in other}))


def versus(against: str, runs: Runs, metric: str) -> dict[str, Verdict]:
    """Every other method against one on a metric, corrected together, each over the seeds that it shares with that one;
    without those that share none."""
    pairs: dict[str, Pair] = {}
    for name, own in runs.items():
        seeds = shared_seeds(own, runs[against])
        if name != against and seeds:
            pairs[name] = (_of_seeds(own, seeds), _of_seeds(runs[against], seeds))
    kept = all((run.per_user or {}).get(metric) is not None for pair in pairs.values() for side in pair for run in side)
    found = {name: (_over_users if kept else _over_seeds)(name, against, pair, metric) for name, pair in pairs.items()}
    known = {name: p for name, one in found.items() if (p := one.p_users if kept else one.p_seeds) is not None}
    adjusted = dict(zip(known, statistics.holm(list(known.values())), strict=True))
    return {name: _corrected(one, adjusted.get(name)) for name, one in found.items()}


def _of_seeds(runs: Sequence[FinishedRun], seeds: Sequence[int]) -> list[FinishedRun]:
    return [next(run for run in runs if run.seed == seed) for seed in seeds]


def _corrected(verdict: Verdict, p: float | None) -> Verdict:
    """The verdict after Holm's correction: at 5 %, and over seeds too where both were tested."""
    seeds = verdict.p_users is None or verdict.p_seeds is None or verdict.p_seeds < LEVEL
    return replace(verdict, p_adjusted=p, significant=p is not None and p < LEVEL and seeds)


def _over_users(name: str, against: str, pair: Pair, metric: str) -> Verdict:
    own, base = pair
    if any(run.users != base[0].users for run in (*own, *base)):
        raise BadInput(f"the runs of {name} and {against} have different users; compare runs on the same data")
    values = {who: [(run.per_user or {})[metric] for run in side] for who, side in ((against, base), (name, own))}
    (found,) = statistics.compare(against, values)
    return Verdict(against, found.difference, found.seeds, found.p_seeds, found.p_users, None, False)


def _over_seeds(name: str, against: str, pair: Pair, metric: str) -> Verdict:
    own, base = ([run.test(metric) for run in side] for side in pair)
    difference = statistics.summarise(own).mean - statistics.summarise(base).mean
    return Verdict(against, difference, len(base), statistics.paired_over_seeds(own, base), None, None, False)
