"""Methods over several data sets: their standings, made from the comparison on each data set."""

from __future__ import annotations

import math
from dataclasses import dataclass
from itertools import groupby

from fedrec.report.model.comparison import GROUPS, Cell, Comparison, Group


@dataclass(frozen=True)
class Standing:
    """A method's place on every data set."""

    method: str
    group: Group
    cells: tuple[Cell | None, ...]
    """One a data set; None where it has no result."""
    rank: float
    """Mean rank within its group over the data sets where it has a result; 1 is best everywhere."""


@dataclass(frozen=True)
class Leaderboard:
    """The same methods under the same protocol on several data sets."""

    comparisons: tuple[Comparison, ...]

    @property
    def names(self) -> list[str]:
        return [str(comparison.data["name"]) for comparison in self.comparisons]

    @property
    def metrics(self) -> list[str]:
        """What is shown: the metric that the round is chosen by, and the table's first one."""
        first = self.comparisons[0]
        return list(dict.fromkeys([first.columns[0], first.main]))

    def standings(self, metric: str) -> list[Standing]:
        """By group, and within a group by mean rank."""
        found: list[Standing] = []
        groups = {row.method: row.group for comparison in self.comparisons for row in comparison.rows}
        ranks = [_ranks(comparison, metric) for comparison in self.comparisons]
        for method, group in groups.items():
            rows = [comparison.row(method) for comparison in self.comparisons]
            cells = tuple(None if row is None else row.cells.get(metric) for row in rows)
            own = [rank[method] for rank in ranks if method in rank]
            found.append(Standing(method, group, cells, sum(own) / len(own) if own else math.inf))
        return sorted(found, key=lambda standing: (GROUPS.index(standing.group), standing.rank))

    def grouped(self, metric: str) -> list[tuple[Group, list[Standing]]]:
        """The standings of each group that has any."""
        return [(group, list(own)) for group, own in groupby(self.standings(metric), key=lambda one: one.group)]


def _ranks(comparison: Comparison, metric: str) -> dict[str, float]:
    """Places within the groups; methods that are level share theirs."""
    from scipy.stats import rankdata

    found: dict[str, float] = {}
    for _, rows in comparison.grouped():
        means = {row.method: row.cells[metric].summary.mean for row in rows if metric in row.cells}
        known = {name: -mean for name, mean in means.items() if not math.isnan(mean)}
        found |= dict(zip(known, rankdata(list(known.values())).tolist(), strict=True))
    return found
