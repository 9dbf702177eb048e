"""Adam and SGD over many clients at once, in place (torch).

All clients advance together, so the number of the step is one scalar; clients are ordered so that those
still at work come first, so every update is of a prefix.
"""

from __future__ import annotations

from typing import Protocol

import numpy as np
import torch
from torch import Tensor

from fedrec.learn.adam import BETA_1, BETA_2, EPS, descend, schedule


class Dense:
    """Parameters whose every entry may move at every step (users, networks).

    ``fused`` steps are one pass over memory and round otherwise than the plain ones.
    """

    def __init__(self, value: Tensor, lr: float, adam: bool, weight_decay: float = 0.0, *, fused: bool = True) -> None:
        # the fused step takes its tensors as plain runs of memory
        self.value, self.lr, self.weight_decay, self.fused = value.contiguous(), lr, weight_decay, fused
        self.first = torch.zeros_like(self.value) if adam else None
        self.second = torch.zeros_like(self.value) if adam else None

    def step(self, number: int, upto: int, gradient: Tensor) -> None:
        """Step ``number`` (from 1) of the first ``upto`` entries."""
        value = self.value[:upto]
        if self.first is None or self.second is None:
            if self.weight_decay:
                gradient = gradient.add(value, alpha=self.weight_decay)
            value.sub_(gradient, alpha=self.lr)
            return
        if not self.fused and not self.weight_decay:
            descend(value, self.first[:upto], self.second[:upto], gradient, self.lr, number)
            return
        # the kernel of torch.optim.Adam(fused=True): one pass over memory instead of seven
        torch.ops.aten._fused_adam_(
            [value], [gradient.contiguous()], [self.first[:upto]], [self.second[:upto]], [],
            [torch.full((), float(number), device=value.device)],
            lr=self.lr, beta1=BETA_1, beta2=BETA_2, weight_decay=self.weight_decay, eps=EPS,
            amsgrad=False, maximize=False,
        )  # fmt: skip


class RowOptimiser(Protocol):
    """Compact item rows of a chunk of clients; the last row is padding."""

    def read(self, rows: Tensor, number: int) -> Tensor:
        """Values of these rows ``[samples, d]`` right before step ``number``."""

    def write(self, rows: Tensor, number: int, gradient: Tensor, upto: int) -> None:
        """Step ``number`` with one gradient per sample; ``upto`` rows belong to clients still at work."""

    def finish(self, steps: Tensor) -> Tensor:
        """Final values ``[rows, d]`` after each row's client has made all its ``steps`` ``[rows]``."""


class SgdRows:
    """Plain SGD: only rows with a gradient move."""

    def __init__(self, value: Tensor, lr: float) -> None:
        self.value, self.lr = value, lr

    def read(self, rows: Tensor, number: int) -> Tensor:
        return self.value.index_select(0, rows)

    def write(self, rows: Tensor, number: int, gradient: Tensor, upto: int) -> None:
        self.value.index_add_(0, rows, gradient, alpha=-self.lr)

    def finish(self, steps: Tensor) -> Tensor:
        return self.value[:-1]


class AdamRows:
    """Dense Adam that visits only the rows of the mini-batch (see :mod:`fedrec.learn.adam`)."""

    def __init__(self, value: Tensor, lr: float, steps: int) -> None:
        self.value, self.lr, self.plan = value, lr, schedule(steps)
        self.first, self.root = torch.zeros_like(value), torch.zeros_like(value)
        self.gradient = torch.zeros_like(value)
        self.last = torch.zeros(len(value), dtype=torch.int64, device=value.device)
        self._read: tuple[Tensor, Tensor, Tensor] | None = None

    def _gaps(self, now: int) -> Tensor:
        """``[now + 1, 4]`` constants of the steps since step 0 .. now: lr A, eps B / A, decays of m and s."""
        plan, then = self.plan, np.arange(now + 1)
        a = plan.tail_a[then] - plan.power_a[now - then] * plan.tail_a[now]
        b = plan.tail_b[then] - plan.power_b[now - then] * plan.tail_b[now]
        eps = np.full(now + 1, EPS)
        eps[:now] = EPS * b[:now] / a[:now]
        found = np.stack([self.lr * a, eps, plan.decay_m[now - then], plan.decay_s[now - then]], 1)
        return torch.from_numpy(found.astype(np.float32)).to(self.value.device)

    def read(self, rows: Tensor, number: int) -> Tensor:
        gap = self._gaps(number - 1).index_select(0, self.last.index_select(0, rows))  # [samples, 4]
        first, root = self.first.index_select(0, rows), self.root.index_select(0, rows)
        moved = first.mul(gap[:, 0:1]).div_(root.add(gap[:, 1:2]))
        value = self.value.index_select(0, rows).sub_(moved)
        self._read = (value, first.mul_(gap[:, 2:3]), root.mul_(gap[:, 3:4]))
        return value.detach()

    def write(self, rows: Tensor, number: int, gradient: Tensor, upto: int) -> None:
        assert self._read is not None
        value, first, root = self._read
        # a row that occurs twice gets the sum of its gradients, and the same new state written twice
        self.gradient.index_add_(0, rows, gradient)
        total = self.gradient.index_select(0, rows)
        self.gradient.index_fill_(0, rows, 0.0)
        first.lerp_(total, 1 - BETA_1)
        root.mul_(root).mul_(BETA_2).addcmul_(total, total, value=1 - BETA_2).sqrt_()
        below = root.mul(float(self.plan.scale[number])).add_(EPS)
        value = value.addcdiv(first, below, value=-self.lr * float(self.plan.size[number]))
        self.value.index_copy_(0, rows, value)
        self.first.index_copy_(0, rows, first)
        self.root.index_copy_(0, rows, root)
        self.last.index_fill_(0, rows, number)

    def finish(self, steps: Tensor) -> Tensor:
        value = self.value[:-1]
        last, first, root = self.last[:-1], self.first[:-1], self.root[:-1]
        for number in torch.unique(steps).tolist():
            own = ((steps == number) & (last > 0)).nonzero().squeeze(1)
            gap = self._gaps(int(number)).index_select(0, last[own])
            value[own] -= first[own] * gap[:, 0:1] / (root[own] + gap[:, 1:2])
        return value


class DenseRows:
    """Rows that are all visited at every step: cheaper where a mini-batch holds a good part of them, and
    needed where FedProx's pull ``mu (Q - Q_downloaded)`` acts at every step."""

    def __init__(self, value: Tensor, lr: float, adam: bool, mu: float) -> None:
        self.origin, self.mu = value.clone() if mu else None, mu
        self.dense = Dense(value, lr, adam)
        self.gradient = torch.zeros_like(value)

    def read(self, rows: Tensor, number: int) -> Tensor:
        return self.dense.value.index_select(0, rows)

    def write(self, rows: Tensor, number: int, gradient: Tensor, upto: int) -> None:
        self.gradient[:upto].zero_()
        self.gradient.index_add_(0, rows, gradient)
        total = self.gradient[:upto]
        if self.origin is not None:
            total.add_(self.dense.value[:upto] - self.origin[:upto], alpha=self.mu)
        self.dense.step(number, upto, total)

    def finish(self, steps: Tensor) -> Tensor:
        return self.dense.value[:-1]
