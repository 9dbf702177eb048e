"""Euclidean projection onto the probability simplex, for many points at once.

Imports torch: import this module where it is used, not at start-up.
"""

from __future__ import annotations

import numpy as np
import torch
from torch import Tensor


def project(points: Tensor) -> Tensor:
    """The nearest point of the simplex to each row: ``argmin ||w - z||^2, sum(w) = 1, w >= 0``.

    ``points`` ``[rows, n]``. The solution is ``max(z - tau, 0)``; sorting finds the threshold ``tau`` exactly:
    it is set by the largest number of leading entries that all stay positive (Held, Wolfe and Crowder 1974;
    Duchi et al. 2008). Sums are made in 64 bits; the result has the type of the input.

    >>> project(torch.tensor([[0.5, 0.9]])).tolist()
    [[0.30000001192092896, 0.699999988079071]]
    """
    if points.ndim != 2 or points.shape[1] == 0:
        raise ValueError(f"points have shape {tuple(points.shape)}; give [rows, n] with n at least 1")
    exact = points.double()
    return (exact - threshold(exact)).clamp_(min=0).to(points.dtype)


def threshold(points: Tensor) -> Tensor:
    """``tau`` ``[rows, 1]`` such that the positive parts of ``z - tau`` sum to one."""
    if points.device.type == "cpu":  # numpy sorts with vector instructions, several times as fast
        falling = torch.from_numpy(np.sort(points.neg().numpy(), axis=1)).neg_()
    else:
        falling = points.sort(dim=1, descending=True).values
    rank = torch.arange(1, points.shape[1] + 1, dtype=points.dtype, device=points.device)
    excess = falling.cumsum(1) - 1
    # entry r is in the support as long as it exceeds the threshold of the first r entries; the first always is
    last = (falling * rank > excess).sum(1, keepdim=True).clamp_(min=1) - 1
    return excess.gather(1, last) / (last + 1)
