"""Item-to-item weights as products of two thin matrices, applied without ever being built."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from fedrec.core.messages import Float32


@dataclass(frozen=True)
class LowPass:
    """The parts of ``diag(scale) V diag(response) V' diag(back)``."""

    vectors: Float32  # [m, k]
    response: Float32  # [k]
    scale: Float32  # [m]
    back: Float32  # [m]


def filtered(histories: Any, reads: Float32, writes: Float32, itself: Float32 | None = None) -> Float32:
    """``X (reads writes' - diag(itself))`` of sparse histories ``[users, m]``; both matrices are ``[m, k]``."""
    found = np.asarray(histories @ reads) @ writes.T
    if itself is not None:
        some = histories.tocoo()
        found[some.row, some.col] -= some.data * itself[some.col]  # nothing dense beside the scores
    return np.asarray(found, np.float32)
