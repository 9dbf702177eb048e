"""Gram matrices of many clients' tables on the processor, one stripe of the tables at a time.

One triangle is computed, in place, and copied at the end: half the work of a full product. Needs no torch.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from fedrec.core import disk_array
from fedrec.core.messages import Float32
from fedrec.data.ragged import Int64
from fedrec.maths.packed import mirror

COLUMNS = 4096
"""Numbers of each table that are handled at once."""
ROWS = 256
"""Clients in a block of a pairwise matrix: large enough for BLAS, small enough to skip half the pairs."""
SPARSE = 0.1
"""Share of positive weights below which a mixture of tables skips the zeros."""


def stripes(tables: Float32, clients: Int64 | None = None) -> Iterator[tuple[slice, Float32]]:
    """Ranges of items, and these items of all clients' tables ``[n, items * d]``; not to be written."""
    step = max(1, COLUMNS // tables.shape[2])
    for begin in range(0, tables.shape[1], step):
        place = slice(begin, min(begin + step, tables.shape[1]))
        part = disk_array.columns(tables, place, clients)
        yield place, part.reshape(len(part), -1)


def gram(tables: Float32, clients: Int64 | None = None) -> Float32:
    """Products ``[n, n]`` of whole tables, of all clients or of some."""
    count = len(tables) if clients is None else len(clients)
    total = np.zeros((count, count), np.float32)
    for _, part in stripes(tables, clients):
        add_upper(total, part)
    mirror(total)
    return total


def add_upper(total: Float32, flat: Float32) -> None:
    """``total += flat flat^T`` on and above the diagonal, in place."""
    from scipy.linalg.blas import ssyrk

    # BLAS counts by columns: what is lower there is upper here, and nothing is copied
    made: Any = ssyrk(1.0, np.ascontiguousarray(flat).T, beta=1.0, c=total.T, trans=1, lower=1, overwrite_c=1)
    if not np.shares_memory(made, total):
        total[...] = made.T
