"""Item-to-item weights as products of two thin matrices, applied without ever being built."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fedrec.extras import installed
from fedrec.threads import over_rows

Float32 = NDArray[np.float32]


@dataclass(frozen=True)
class LowPass:
    """The parts of ``diag(scale) V diag(response) V' diag(back)``."""

    vectors: Float32  # [m, k]
    response: Float32  # [k]
    scale: Float32  # [m]
    back: Float32  # [m]


def times_thin(sparse: Any, thin: Float32) -> Float32:
    """``sparse @ thin`` of a CSR matrix ``[n, m]`` and ``[m, k]``, on threads where there is a compiler."""
    if not installed("numba") or sparse.dtype != thin.dtype:
        return np.asarray(sparse @ thin)
    from fedrec.maths import sparse_rows_kernel

    found = np.empty((sparse.shape[0], thin.shape[1]), thin.dtype)
    parts = (sparse.indptr, sparse.indices, sparse.data)
    over_rows(sparse_rows_kernel.times_thin, len(found), (*parts, np.ascontiguousarray(thin), found))
    return found


def filtered(histories: Any, reads: Float32, writes: Float32, itself: Float32 | None = None) -> Float32:
    """``X (reads writes' - diag(itself))`` of sparse histories ``[users, m]``; both matrices are ``[m, k]``."""
    found = times_thin(histories, reads) @ writes.T
    if itself is not None:
        some = histories.tocoo()
        found[some.row, some.col] -= some.data * itself[some.col]  # nothing dense beside the scores
    return np.asarray(found, np.float32)
