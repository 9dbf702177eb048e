"""Composite aggregation for very many clients: few candidates each, tables that list few rows.

The exact way needs every pair of clients and every client's whole table. Here a table is a shared one plus
the rows in which a client differs most; a keyed random sketch of these differences and the first rows of X_u
find each client's best candidates; for those alone, similarity (FedCA Eq. 6) and complementarity (Eq. 7) are
computed exactly, and Eq. (8) is solved on them. So the only errors are a missed candidate and rows that were
not listed; with all clients as candidates and room for all rows the result is the exact one.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from fedrec import keyed
from fedrec.core.messages import Float32
from fedrec.data.ragged import Int32, Int64
from fedrec.maths.subspaces import padded
from fedrec.threads import over_rows

WIDTH = 64
"""Numbers in a sketch: squared distances come out with a deviation of about sqrt(2 / WIDTH)."""
POSITIONS = 256
"""Rows of X_u that the search looks at."""
AT_ONCE = 1 << 25
"""Pairs that the search holds at once."""


@dataclass(frozen=True)
class FewRows:
    """Tables as differences from a shared one, in a fixed number of rows each."""

    ids: Int32  # [clients, rows] ascending; n_items where there is none
    values: Float32  # [clients, rows, d]; zero where there is none
    n_items: int

    @classmethod
    def none(cls, clients: int, rows: int, dim: int, n_items: int) -> FewRows:
        """Tables that do not differ."""
        return cls(np.full((clients, rows), n_items, np.int32), np.zeros((clients, rows, dim), np.float32), n_items)

    def added(self, base: Float32) -> Float32:
        """Whole tables ``[clients, n_items, d]``."""
        clients = len(self.ids)
        tables = np.empty((clients, self.n_items + 1, base.shape[1]), np.float32)
        tables[:, :-1], tables[:, -1] = base, 0
        tables[np.arange(clients)[:, None], self.ids] += self.values  # the extra row takes what is not there
        return tables[:, :-1]


def few_rows(differences: Float32, rows: int) -> FewRows:
    """The rows of ``[clients, n_items, d]`` that are largest; not those that are zero."""
    clients, n_items, dim = differences.shape
    size = np.einsum("cid,cid->ci", differences, differences)
    if rows < n_items:
        ids = np.argpartition(-size, rows - 1, axis=1)[:, :rows]
    else:
        ids = np.broadcast_to(np.arange(n_items), (clients, n_items))
    ids = np.sort(np.where(np.take_along_axis(size, ids, 1) > 0, ids, n_items), axis=1).astype(np.int32)
    found = FewRows.none(clients, rows, dim, n_items)
    found.ids[:, : ids.shape[1]] = ids
    who, place = np.nonzero(found.ids < n_items)
    found.values[who, place] = differences[who, found.ids[who, place]]
    return found


def sketch(tables: FewRows, key: int, width: int = WIDTH) -> Float32:
    """``[clients, width]``: a count sketch of the differences; distances are kept in expectation.

    Number ``t`` of item ``i`` goes to a keyed place with a keyed sign (Charikar, Chen and Farach-Colton
    2002), so a client's sketch costs one pass over its rows and does not depend on other clients.
    """
    clients, rows, dim = tables.values.shape
    words = keyed.words(np.array([key], np.uint64), tables.n_items * dim + dim)[0]
    place = (words % np.uint64(width)).astype(np.int64)
    sign = np.where(words >> np.uint64(63), 1.0, -1.0)
    found = np.empty((clients, width), np.float32)
    step = max(1, (1 << 22) // (rows * dim))
    for first in range(0, clients, step):
        ids = tables.ids[first : first + step].astype(np.int64)
        at = ids[:, :, None] * dim + np.arange(dim)  # [some, rows, d]
        signed = tables.values[first : first + step] * sign[at]
        where = place[at] + np.arange(len(ids))[:, None, None] * width
        summed = np.bincount(where.ravel(), signed.ravel(), minlength=len(ids) * width)
        found[first : first + step] = summed.reshape(len(ids), width)
    return found


def candidates(
    sketches: Float32 | None,
    vectors: Float32 | None,
    start: Int64 | None,
    proxy: NDArray[np.float64],
    similar: float,
    complementary: float,
    count: int,
    kind: Literal["cos", "sin", "raw"] = "cos",
    device: str = "cpu",
) -> Int64:
    """``[n, count]`` clients with the largest ``p + similar * s + complementary * c``, as the search sees it.

    Distances come from the sketches, angles from the first rows of X_u (all of them for all but the
    longest). Clients are taken in order of length, so that a block meets the others through no more rows
    than its own longest has. A client is always its own first candidate.
    """
    import torch

    n = len(proxy)
    count = min(count, n)
    given = None if vectors is None or start is None or complementary == 0 else (vectors, start)
    counts = np.zeros(n, np.int64) if given is None else np.minimum(np.diff(given[1]), POSITIONS)
    order = np.argsort(counts, kind="stable")
    rank_by = torch.from_numpy(proxy[order].astype(np.float32)).to(device)
    points = None if sketches is None else torch.from_numpy(sketches[order]).to(device)
    norms = None if points is None else (points**2).sum(1)
    heads = given and [torch.from_numpy(padded(own, given[1], counts, order)).to(device) for own in given[0].T]
    found = np.empty((n, count), np.int64)
    step = max(1, AT_ONCE // n)
    for first in range(0, n, step):
        last = min(first + step, n)
        score = rank_by.expand(last - first, n).clone()
        if points is not None and norms is not None:
            squares = torch.addmm(norms[first:last, None] + norms, points[first:last], points.T, alpha=-2)
            score.add_(squares.clamp_(min=0).add_(1).reciprocal_(), alpha=similar)
        if heads is not None:
            width = int(counts[order[last - 1]])
            angle = torch.zeros_like(score)
            for column in heads:  # [n, positions]
                angle += (column[first:last, :width] @ column[:, :width].T).clamp_(-1, 1).arccos_()
            angle /= len(heads)
            score.add_(angle.sin_() if kind == "sin" else angle.cos_(), alpha=complementary)
        own = torch.arange(first, last, device=device)
        score[own - first, own] = torch.inf
        found[order[first:last]] = order[score.topk(count, dim=1).indices.cpu().numpy()]
    return found


def sparse_weights(
    tables: FewRows | None,
    vectors: Float32 | None,
    start: Int64 | None,
    others: Int64,
    proxy: NDArray[np.float64],
    similar: float,
    complementary: float,
    kind: Literal["cos", "sin", "raw"] = "cos",
    scale: float = 1.0,
) -> Float32:
    """Weights ``[n, count]`` of the candidates: Eq. (6) and (7) exactly, Eq. (8) on the candidates alone."""
    import torch

    from fedrec.maths.neighbours_kernel import pair_angles, pair_squares
    from fedrec.maths.simplex import project

    n = len(others)
    point = proxy[others]
    if tables is not None and similar:
        squares = np.empty(others.shape)
        norms = np.einsum("cld,cld->c", tables.values, tables.values, dtype=np.float64)
        over_rows(pair_squares, n, (tables.ids, tables.values, norms, tables.n_items, others, squares))
        point = point + similar / (1 + squares)
    if vectors is not None and start is not None and complementary:
        angles = np.empty(others.shape)
        over_rows(pair_angles, n, (vectors, start, others, angles))
        point = point + complementary * (np.sin(angles) if kind == "sin" else np.cos(angles))
    return project(torch.from_numpy(point / scale)).numpy().astype(np.float32)


def mix_few(tables: FewRows, others: Int64, weights: Float32, rows: int) -> FewRows:
    """``sum_v w_uv Q_v`` over the candidates; of the rows that occur, the ``rows`` largest."""
    from fedrec.maths.neighbours_kernel import mix_rows

    clients, _, dim = tables.values.shape
    found = FewRows.none(clients, rows, dim, tables.n_items)
    given = (tables.ids, tables.values, tables.n_items, others, weights)
    over_rows(mix_rows, clients, (*given, found.ids, found.values))
    return found
