"""Mean ranks over data sets and the least difference that counts (Friedman and Nemenyi, as in Demšar, JMLR 2006)."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from fedrec.report.model.leaderboard import Leaderboard

LEVEL = 0.05


@dataclass(frozen=True)
class MeanRanks:
    """Methods by falling merit, with what their mean ranks can tell apart."""

    metric: str
    methods: tuple[str, ...]
    ranks: tuple[float, ...]
    """Mean place among all of them; 1 is best everywhere, ties share their places."""
    cases: int
    """Data sets."""
    difference: float
    """Two mean ranks nearer than this cannot be told apart at 5 % (Nemenyi)."""
    p: float
    """Friedman's test: how probable ranks so far apart would be if all methods were equal."""

    @property
    def groups(self) -> list[tuple[int, int]]:
        """Largest runs of methods, first and last place in the list, that cannot be told apart."""
        found: list[tuple[int, int]] = []
        for first, rank in enumerate(self.ranks):
            last = max(place for place, other in enumerate(self.ranks) if other - rank < self.difference)
            if last > first and (not found or last > found[-1][1]):
                found.append((first, last))
        return found


def mean_ranks(board: Leaderboard, metric: str) -> MeanRanks | None:
    """Of the methods that have a result on every data set; None with fewer than three of them or two data sets."""
    complete = [
        standing
        for standing in board.standings(metric)
        if all(cell is not None and not math.isnan(cell.summary.mean) for cell in standing.cells)
    ]
    if len(complete) < 3 or len(board.comparisons) < 2:
        return None
    values = np.array([[cell.summary.mean for cell in one.cells if cell is not None] for one in complete])
    places, p = friedman(values)
    order = np.argsort(places, kind="stable")
    names = tuple(complete[place].method for place in order)
    ranks = tuple(float(places[place]) for place in order)
    return MeanRanks(metric, names, ranks, values.shape[1], nemenyi(*values.shape), p)


def friedman(values: NDArray[np.float64]) -> tuple[NDArray[np.float64], float]:
    """Mean ranks of methods ``[methods, data sets]``, more is better, and the p-value of Friedman's test."""
    from scipy.stats import chi2, rankdata

    methods, cases = values.shape
    ranks = np.stack([rankdata(-column) for column in values.T])  # [data sets, methods]
    mean = ranks.mean(0)
    between = cases * ((mean - (methods + 1) / 2) ** 2).sum()
    within = ((ranks - (methods + 1) / 2) ** 2).sum() / (cases * (methods - 1))  # ties make it smaller
    return mean, 1.0 if within == 0 else float(chi2.sf(between / within, methods - 1))


def nemenyi(methods: int, cases: int, level: float = LEVEL) -> float:
    """The critical difference ``q sqrt(k (k + 1) / 6 N)`` of k methods on N data sets.

    >>> round(nemenyi(4, 14), 2)
    1.25
    """
    from scipy.stats import studentized_range

    q = float(studentized_range.ppf(1 - level, methods, np.inf)) / math.sqrt(2)
    return q * math.sqrt(methods * (methods + 1) / (6 * cases))
