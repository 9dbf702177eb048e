"""alpha and beta without a grid of runs (not in the paper): clients try points and say what each is worth to them.

Training starts from the average, so a mixture serves inference only, and clients may have mixtures of different
(alpha, beta). Most have the point that is best so far, some a point drawn at random, fewer as rounds go by. Before its
next training a client ranks its own validation items with its mixture and with the average, both of which it has
anyway, and reports the sum of the differences; the items stay where they are. (0, 0), whose mixture is the average,
gains exactly nothing: no point is chosen that does not gain.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Annotated, Any

import numpy as np
from numpy.typing import NDArray

from fedrec import keyed
from fedrec.core.block import Block
from fedrec.core.kinds import PlacesIn
from fedrec.core.messages import Float32
from fedrec.data.ragged import Int64
from fedrec.methods.fedca.settings import FedCaSettings

Float64 = NDArray[np.float64]

STANDARDISED = ((0.0, 3.0, 10.0, 30.0), (0.0, 6.0, 20.0))
PLAIN = ((0.0, 0.1, 0.3, 0.5), (0.0, 0.2, 0.4))
"""alpha and beta that are tried: of measures in units of their spread, and as section 6.2 has them."""
FADES = 0.9
"""What a round's gains count in the next round: early ones say little of a trained model."""
DOUBT = 20.0
"""Reports without any gain that a point starts with."""


@dataclass(frozen=True)
class Trials:
    """Who has which point, and what the points gained so far."""

    points: Annotated[Int64, PlacesIn("gains", nobody=-1)]  # [clients] place in the grid; -1 before the first mixture
    gains: Float64  # [grid] sum of reported gains, faded
    counts: Float64  # [grid] reports behind them, faded
    rounds: int = 0

    @classmethod
    def none(cls, clients: int, settings: FedCaSettings) -> Trials:
        size = len(grid(settings))
        return cls(np.full(clients, -1), np.zeros(size), np.zeros(size))

    @property
    def best(self) -> int:
        """The point of the largest mean gain; 0 is (0, 0)."""
        return int(np.argmax(self.gains / (self.counts + DOUBT)))

    def heard(self, clients: Int64, reports: Float64) -> Trials:
        """With this round's reports ``[n, 2]``: gains and how many items they are of."""
        points = self.points[clients]
        known = points > 0  # (0, 0) gains nothing by definition
        size = len(self.gains)
        gains, counts = (np.bincount(points[known], reports[known, i], size) for i in (0, 1))
        return Trials(self.points, FADES * self.gains + gains, FADES * self.counts + counts, self.rounds + 1)

    def dealt(self, clients: Int64, tickets: NDArray[np.uint32]) -> Trials:
        """With new points for those who are aggregated: the best, or for some a random one."""
        drawn = keyed.mix(tickets.astype(np.uint64) + np.uint64(keyed.GOLDEN))
        tries = (drawn >> np.uint64(40)).astype(np.float64) / 2.0**24 < 1.0 / (1.0 + 0.5 * self.rounds)
        random = 1 + (drawn % np.uint64(len(self.gains) - 1)).astype(np.int64)
        points = self.points.copy()
        points[clients] = np.where(tries, random, self.best)
        return replace(self, points=points)


def grid(settings: FedCaSettings) -> list[tuple[float, float]]:
    """The points that are tried, (0, 0) first."""
    alphas, betas = STANDARDISED if settings.standardised else PLAIN
    return [(alpha, beta) for alpha in alphas for beta in betas]


def gains(method: Any, private: Any, download: Any, block: Block) -> Float32:
    """``[clients, 2]``: what its mixture gains over the average on a client's validation items, and their number."""
    found = np.zeros((block.n_clients, 2), np.float32)
    if block.valid is None or not len(block.valid.values):
        return found
    average = np.broadcast_to(download.common, download.tables.shape)
    gained = sum(
        sign * quality(method.scores_with(private, tables, {}, block), block)
        for sign, tables in ((1.0, download.tables), (-1.0, average))
    )
    owner = block.client_of_user[block.valid.owners]
    found[:, 0] = np.bincount(owner, gained, block.n_clients)
    found[:, 1] = np.bincount(owner, minlength=block.n_clients)
    return found


def quality(scores: Float32, block: Block) -> Float64:
    """``1 / log2(1 + rank)`` of every validation item among all that its user has not trained on (NDCG without end)."""
    assert block.valid is not None
    scores[block.train.owners, block.train.values] = -np.inf
    own = scores[block.valid.owners, block.valid.values][:, None]
    others = scores[block.valid.owners]
    ranks = 0.5 + (others > own).sum(1) + 0.5 * (others == own).sum(1)
    return np.asarray(1.0 / np.log2(1.0 + ranks))


def weights(method: Any, terms: Any, points: Int64) -> Any:
    """W ``[n, n]``, each client's row at its own point."""
    import torch

    p = torch.as_tensor(terms.proxy, dtype=torch.float64, device=method.device)
    found = (p / p.sum()).float().repeat(len(points), 1)
    for point in np.unique(points[points > 0]):
        rows = np.flatnonzero(points == point)
        found[rows] = method.weights(terms, *grid(method.settings)[point], rows)
    return found
