"""Low rank: send a table change as a product of two thin matrices (truncated SVD)."""

from __future__ import annotations

from dataclasses import dataclass
from math import ceil

import numpy as np
from numpy.typing import NDArray

from fedrec.core.block import Block
from fedrec.core.messages import Array, Float32, Rows
from fedrec.core.method import Keys
from fedrec.privacy.compressed import Compressed, LowRank
from fedrec.privacy.fields import Part, Sent, protected, with_fields
from fedrec.privacy.link import Compression


@dataclass(frozen=True)
class Truncate(Compression):
    """The nearest table of rank ``r = ceil(keep * d)`` to each client's ``[n, d]`` change (Eckart-Young).

    For item rows and per-client matrices; other fields, and tables so small that two factors would be
    larger, leave as they are.
    """

    keep: float

    def apply(self, upload: Sent, block: Block, keys: Keys) -> Sent:
        forms: dict[str, Compressed] = {}
        for part in protected(upload, block):
            shape = _table(part)
            if shape is None:
                continue
            height, dim = shape
            rank = max(1, ceil(self.keep * dim - 1e-9))
            if rank * (height + dim) < height * dim:
                forms[part.name] = _factors(part.content, rank)
        return with_fields(upload, forms)


def _table(part: Part) -> tuple[int, int] | None:
    """Height and width of the table that a field is for each client, if it is one."""
    if isinstance(part.content, Rows):
        return part.content.n_items, part.width
    one_each = len(part.start) == len(part.content) + 1
    return part.content.shape[1:] if part.content.ndim == 3 and one_each else None


def _factors(content: Rows | Array, rank: int) -> LowRank:
    if not isinstance(content, Rows):
        right = np.stack([right_vectors(table, rank) for table in content])
        return LowRank(content @ right.transpose(0, 2, 1), right)
    # Rows that did not change are zero: they add nothing to the SVD and need no row of the left factor.
    tables = np.split(content.values, content.start[1:-1])
    right = np.stack([right_vectors(table, rank) for table in tables])  # [clients, r, d]
    left = np.concatenate([table @ own.T for table, own in zip(tables, right, strict=True)])  # [rows, r]
    return LowRank(Rows(content.start, content.ids, left, content.n_items), right)


def right_vectors(table: NDArray[np.floating], rank: int) -> Float32:
    """``[rank, d]`` leading right singular vectors of ``[n, d]``; zero rows where the table has fewer."""
    height, dim = table.shape
    exact = table.astype(np.float64)
    if height >= dim:
        vectors = np.linalg.eigh(exact.T @ exact)[1][:, ::-1].T  # d x d: far cheaper than an SVD of n x d
    else:
        vectors = np.linalg.svd(exact, full_matrices=False)[2]
    right = np.zeros((rank, dim), table.dtype)
    right[: len(vectors)] = vectors[:rank]
    return right
