"""Adam: its constants, its step for tensors and for arrays, its schedule over a local training, and a closed form for
steps without a gradient.

Every other Adam takes its constants from here: torch's fused kernel and the rows of a mini-batch
(:mod:`fedrec.learn.torch.optimisers`), and the compiled kernels (:mod:`fedrec.learn.kernel.vectors`).

Dense Adam moves a row at every step after its first gradient, also at steps where the row is in no
mini-batch. With ``m`` and ``s = sqrt(v)`` taken right after step ``t``, the steps ``t + 1 .. t2``
without a gradient change the row by

    - lr * sum over tau of  m b1^(tau-t) / (1 - b1^tau)  /  ( s b2^((tau-t)/2) / sqrt(1 - b2^tau) + eps ).

To first order in ``eps / s`` that is ``m A / (s + eps B / A)`` with two sums ``A`` and ``B`` that depend on
``t`` and ``t2`` alone, so one division replaces the loop. What is left out is of second order in
``eps / s`` *times* the relative variance of the step sizes within the gap. It is largest after a row's first gradient
at the first step: 2e-6 of the gap's move for a gradient of 1e-5, 2e-4 for one of 1e-6, a hundredth for one of 1e-7,
and a fifth for the smallest; after a hundred steps less than 2e-3 for any. ``A`` and ``B`` come from tail sums,
``A(t, t2) = S(t) - r^(t2-t) S(t2)``, which unlike prefix sums neither underflow nor cancel however long training is.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from typing import TYPE_CHECKING

import numpy as np

from fedrec.core.fold import Float64
from fedrec.core.messages import Float32

if TYPE_CHECKING:
    from torch import Tensor

BETA_1 = 0.9
BETA_2 = 0.999
EPS = 1e-8

DENSE_BELOW = 8
"""Rows per sample of a step up to which visiting every row costs less than finding those in the batch."""


def descend(value: Tensor, mean: Tensor, square: Tensor, gradient: Tensor, rate: float, step: int) -> None:
    """Step ``step`` (1, 2, ...) of tensors, in place, as ``torch.optim.Adam`` does it."""
    mean.mul_(BETA_1).add_(gradient, alpha=1 - BETA_1)
    square.mul_(BETA_2).addcmul_(gradient, gradient, value=1 - BETA_2)
    root = (square / (1 - BETA_2**step)).sqrt_().add_(EPS)
    value.addcdiv_(mean, root, value=-rate / (1 - BETA_1**step))


def descended(
    value: Float32, mean: Float32, square: Float32, gradient: Float32, rate: float, step: int
) -> tuple[Float32, Float32, Float32]:
    """The same for arrays, which stay as they are: new value and moments (a server's step)."""
    mean = np.float32(BETA_1) * mean + np.float32(1 - BETA_1) * gradient
    square = np.float32(BETA_2) * square + np.float32(1 - BETA_2) * gradient * gradient
    root = np.sqrt(square / np.float32(1 - BETA_2**step)) + np.float32(EPS)
    return value - np.float32(rate / (1 - BETA_1**step)) * mean / root, mean, square


@dataclass(frozen=True)
class Schedule:
    """Per-step constants for a learning rate of one; index 0 is the state before the first step."""

    size: Float64  # [steps + 1] 1 / (1 - b1^t): size of step t
    scale: Float64  # [steps + 1] 1 / sqrt(1 - b2^t): factor of sqrt(v) at step t
    tail_a: Float64  # [steps + 1] S(t) of A
    tail_b: Float64  # [steps + 1] S(t) of B
    power_a: Float64  # [steps + 1] (b1 / b2^(1/2))^k
    power_b: Float64  # [steps + 1] (b1 / b2)^k
    decay_m: Float64  # [steps + 1] b1^k
    decay_s: Float64  # [steps + 1] b2^(k/2)

    def stacked(self) -> Float64:
        """``[8, steps + 1]`` in the order of the fields."""
        return np.stack([getattr(self, name) for name in self.__dataclass_fields__])


@lru_cache(maxsize=8)
def schedule(steps: int) -> Schedule:
    """The constants of ``steps`` Adam steps (betas 0.9 and 0.999, as torch's defaults)."""
    t = np.arange(steps + 1, dtype=np.float64)
    with np.errstate(divide="ignore"):
        size = 1.0 / (1.0 - BETA_1**t)
        scale = 1.0 / np.sqrt(1.0 - BETA_2**t)
    size[0] = scale[0] = 0.0
    rate_a, rate_b = BETA_1 / np.sqrt(BETA_2), BETA_1 / BETA_2
    tail_a, tail_b = np.zeros(steps + 1), np.zeros(steps + 1)
    for now in range(steps - 1, -1, -1):
        after = now + 1
        tail_a[now] = rate_a * (size[after] / scale[after] + tail_a[after])
        tail_b[now] = rate_b * (size[after] / scale[after] ** 2 + tail_b[after])
    return Schedule(size, scale, tail_a, tail_b, rate_a**t, rate_b**t, BETA_1**t, BETA_2 ** (t / 2))
