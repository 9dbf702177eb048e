"""Layers that every user has for itself: a private encoder, or a copy of a shared layer.

One interface for the CPU (the kernels of :mod:`fedrec.methods.vae.outer_kernel`) and for torch on any device,
which is also the plain reference that the kernels are tested against.
"""

from __future__ import annotations

import numpy as np
import torch
from numpy.typing import NDArray

from fedrec.learn.adam import descend
from fedrec.learn.samples import has_numba


class OwnLayers:
    """A layer of each user, rows below each other; user ``u`` has ``start[u] .. start[u + 1]`` of them.

    ``weights`` ``[rows, out]`` change in place. The optimiser (Adam or plain descent) starts afresh. With
    ``accumulate`` Adam sees the sum of all gradients so far, as if nobody cleared them.
    """

    def __init__(
        self,
        start: NDArray[np.int64],
        weights: torch.Tensor,
        epochs: int,
        rate: float,
        *,
        adam: bool = True,
        accumulate: bool = False,
        kernel: bool | None = None,
    ) -> None:
        self.start, self.weights, self.rate, self.adam = start, weights, rate, adam
        self.accumulate = accumulate
        self.kernel = (weights.device.type == "cpu" and has_numba()) if kernel is None else kernel
        rows, width = weights.shape
        users = len(start) - 1
        self.inputs = weights.new_zeros((rows, epochs))
        self.deltas = weights.new_zeros((users, epochs, width))
        if not self.kernel:
            owners = np.repeat(np.arange(users), np.diff(start))
            self.owners = torch.from_numpy(owners).to(weights.device)
            self.mean = torch.zeros_like(weights) if adam else None
            self.square = torch.zeros_like(weights) if adam else None
            self.total = torch.zeros_like(weights) if accumulate else None

    def forward(self, inputs: torch.Tensor, epoch: int) -> torch.Tensor:
        """``[rows] -> [users, out]``."""
        self.inputs[:, epoch] = inputs
        out = self.weights.new_zeros((self.deltas.shape[0], self.weights.shape[1]))
        if not self.kernel:
            return out.index_add_(0, self.owners, self.weights * inputs[:, None])
        from fedrec.methods.vae.outer_kernel import read_layers
        from fedrec.threads import over_pieces

        arguments = (self.start, self.weights.numpy(), self.inputs.numpy(), epoch, out.numpy())
        over_pieces(read_layers, np.diff(self.start), arguments)
        return out

    def backward(self, delta: torch.Tensor, epoch: int, *, want_back: bool = True) -> torch.Tensor:
        """Gradient of the inputs ``[rows]`` from that of the outputs ``[users, out]``; then one step."""
        self.deltas[:, epoch] = delta
        if self.kernel:
            from fedrec.methods.vae.outer_kernel import step_layers
            from fedrec.threads import over_pieces

            back = self.weights.new_zeros(len(self.weights))
            arguments = (
                self.start, self.weights.numpy(), self.inputs.numpy(), self.deltas.numpy(),
                epoch, np.float32(self.rate), self.adam, self.accumulate, want_back, back.numpy(),
            )  # fmt: skip
            over_pieces(step_layers, np.diff(self.start), arguments)
            return back
        spread = delta[self.owners]  # [rows, out]
        back = (self.weights * spread).sum(1) if want_back else self.weights.new_zeros(len(self.weights))
        gradient = spread.mul_(self.inputs[:, epoch, None])
        if self.mean is None or self.square is None:
            self.weights.sub_(gradient, alpha=self.rate)
            return back
        if self.total is not None:
            gradient = self.total.add_(gradient)
        descend(self.weights, self.mean, self.square, gradient, self.rate, epoch + 1)
        return back


def with_bias(values: torch.Tensor) -> torch.Tensor:
    """``[users, in] -> [users * (in + 1)]``: inputs of layers whose last row is the bias."""
    one = values.new_ones((len(values), 1))
    return torch.cat([values, one], dim=1).reshape(-1)


def without_bias(back: torch.Tensor, users: int) -> torch.Tensor:
    """``[users * (in + 1)] -> [users, in]``."""
    return back.reshape(users, -1)[:, :-1]


def equal_parts(users: int, rows: int) -> NDArray[np.int64]:
    """Where each user's rows begin when all have as many."""
    return np.arange(users + 1, dtype=np.int64) * rows
