"""Adam's schedule as the kernels read it: rows of ``Schedule.stacked()``, and the constants of a gap (numba)."""

from __future__ import annotations

import numpy as np

from fedrec.compiled import njit
from fedrec.learn.adam import EPS

SIZE, SCALE, TAIL_A, TAIL_B, POWER_A, POWER_B, DECAY_M, DECAY_S = range(8)


@njit(inline="always")
def gap(plan, then, now):
    """Constants of the steps ``then + 1 .. now`` without a gradient: A, eps B / A, decay of m and of s."""
    k = now - then
    a = plan[TAIL_A, then] - plan[POWER_A, k] * plan[TAIL_A, now]
    b = plan[TAIL_B, then] - plan[POWER_B, k] * plan[TAIL_B, now]
    return (np.float32(a), np.float32(EPS * b / a), np.float32(plan[DECAY_M, k]), np.float32(plan[DECAY_S, k]))
