"""Which differences of a table would stand up with other users and other seeds."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from fedrec.errors import BadInput
from fedrec.evaluation import statistics
from fedrec.report.model.runs import FinishedRun

LEVEL = 0.05
Runs = Mapping[str, Sequence[FinishedRun]]


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


def versus(against: str, runs: Runs, metric: str) -> dict[str, Verdict]:
    """Every other method against one on a metric, corrected together, over the seeds that all have."""
    seeds = sorted(set.intersection(*({run.seed for run in own} for own in runs.values())))
    if not seeds or len(runs) < 2:
        return {}
    paired = {name: [next(run for run in own if run.seed == seed) for seed in seeds] for name, own in runs.items()}
    if all((run.per_user or {}).get(metric) is not None for own in paired.values() for run in own):
        return _over_users(against, paired, metric)
    return _over_seeds(against, paired, metric)


def _over_users(against: str, paired: Runs, metric: str) -> dict[str, Verdict]:
    users = paired[against][0].users
    for name, own in paired.items():
        if any(run.users != users for run in own):
            raise BadInput(f"the runs of {name} and {against} have different users; compare runs on the same data")
    values = {name: [(run.per_user or {})[metric] for run in own] for name, own in paired.items()}
    return {
        found.method: Verdict(
            against, found.difference, found.seeds, found.p_seeds, found.p_users, found.p_adjusted, found.significant
        )
        for found in statistics.compare(against, values)
    }


def _over_seeds(against: str, paired: Runs, metric: str) -> dict[str, Verdict]:
    base = [run.test(metric) for run in paired[against]]
    others = [name for name in paired if name != against]
    values = {name: [run.test(metric) for run in paired[name]] for name in others}
    tested = {name: statistics.paired_over_seeds(values[name], base) for name in others}
    known = [name for name in others if tested[name] is not None]
    adjusted = dict(zip(known, statistics.holm([tested[name] or 0.0 for name in known]), strict=True))
    return {
        name: Verdict(
            against,
            statistics.summarise(values[name]).mean - statistics.summarise(base).mean,
            len(base),
            tested[name],
            None,
            adjusted.get(name),
            adjusted.get(name, 1.0) < LEVEL,
        )
        for name in others
    }
