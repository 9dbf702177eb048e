"""The private encoder phi_u and gate psi_u of each user of a chunk, forward and backward (FedDAE Eq. 5).

Their layers have one interface for the CPU (the kernels of :mod:`fedrec.methods.vae.outer_kernel`) and for torch on any
device, which is also the plain reference that the kernels are tested against.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import torch
from numpy.typing import NDArray

from fedrec.backbones.vae import Bags
from fedrec.extras import installed
from fedrec.learn.adam import descend
from fedrec.methods.vae.plan import LocalPlan


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
        self.kernel = (weights.device.type == "cpu" and installed("numba")) if kernel is None else kernel
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
            from fedrec.methods.vae.outer_kernel import step_layers, step_layers_otherwise
            from fedrec.threads import over_pieces

            back = self.weights.new_zeros(len(self.weights))
            known = (self.start, self.weights.numpy(), self.inputs.numpy(), self.deltas.numpy())
            now, wanted = (epoch, np.float32(self.rate)), (want_back, back.numpy())
            if self.adam and not self.accumulate:
                over_pieces(step_layers, np.diff(self.start), (*known, *now, *wanted))
            else:
                over_pieces(step_layers_otherwise, np.diff(self.start), (*known, *now, self.adam, *wanted))
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


Tensors = dict[str, torch.Tensor]
Float32 = NDArray[np.float32]


@dataclass(frozen=True)
class PrivateParts:
    """The private encoder phi_u and gate psi_u of each user of a chunk; numpy views that are written."""

    rows: Float32  # [interactions, 3d]
    bias: Float32  # [users, 3d]
    mid: Float32  # [users, 3d + 1, 2d]
    out: Float32  # [users, 2d + 1, 2 x d]
    gate_rows: Float32  # [interactions, 2 (linear), hidden (mlp) or 0 (fixed)]
    gate_bias: Float32  # [users, hidden or 0]
    gate_out: Float32  # [users, hidden + 1 or 0, 2]


class OwnEncoder:
    """The private encoder and gate of a chunk while it trains."""

    def __init__(self, parts: PrivateParts, bags: Bags, plan: LocalPlan, device: str) -> None:
        self.parts, self.bags, self.plan = parts, bags, plan
        users = bags.users
        self.each = equal_parts(users, 1)

        def layers(start: NDArray[np.int64], array: Float32) -> OwnLayers:
            weights = torch.as_tensor(array).reshape(-1, array.shape[-1]).to(device)
            return OwnLayers(start, weights, plan.epochs, plan.rate, accumulate=plan.accumulate)

        self.rows, self.bias = layers(bags.start, parts.rows), layers(self.each, parts.bias)
        self.mid = layers(equal_parts(users, parts.mid.shape[1]), parts.mid)
        self.out = layers(equal_parts(users, parts.out.shape[1]), parts.out)
        self.ones = self.bias.weights.new_ones(users)
        self.has = self.rows.weights.new_ones(len(bags.ids))  # r_u: one for each item a user has
        self.gate_rows = layers(bags.start, parts.gate_rows) if plan.gate != "fixed" else None
        if plan.gate == "mlp":
            self.gate_bias = layers(self.each, parts.gate_bias)
            self.gate_out = layers(equal_parts(users, parts.gate_out.shape[1]), parts.gate_out)

    def encode(self, values: torch.Tensor, epoch: int) -> torch.Tensor:
        """``[users, 2 x d]`` mean and log variance of the local encoder."""
        self.wide = (self.rows.forward(values, epoch) + self.bias.forward(self.ones, epoch)).tanh()
        self.narrow = self.mid.forward(with_bias(self.wide), epoch).tanh()
        return self.out.forward(with_bias(self.narrow), epoch)

    def encode_back(self, delta: torch.Tensor, epoch: int) -> None:
        users = self.bags.users
        back = without_bias(self.out.backward(delta, epoch), users) * (1 - self.narrow**2)
        back = without_bias(self.mid.backward(back, epoch), users) * (1 - self.wide**2)
        self.rows.backward(back, epoch, want_back=False)
        self.bias.backward(back, epoch, want_back=False)

    def weights(self, epoch: int) -> torch.Tensor:
        """Gate ``[users, 2]``: softmax(r_u . psi_u), weights of the global and of the local encoder."""
        if self.gate_rows is None:
            return self.ones[:, None] * self.ones.new_tensor([[self.plan.weight, 1 - self.plan.weight]])
        first = self.gate_rows.forward(self.has, epoch)
        if self.plan.gate == "mlp":
            self.gate_hidden = (first + self.gate_bias.forward(self.ones, epoch)).relu()
            first = self.gate_out.forward(with_bias(self.gate_hidden), epoch)
        return first.softmax(1)

    def weights_back(self, weights: torch.Tensor, delta: torch.Tensor, epoch: int) -> None:
        """``delta`` ``[users, 2]`` is the gradient of the two weights."""
        if self.gate_rows is None:
            return
        back = weights * (delta - (weights * delta).sum(1, keepdim=True))
        if self.plan.gate == "mlp":
            back = without_bias(self.gate_out.backward(back, epoch), self.bags.users)
            back = back * (self.gate_hidden > 0)
            self.gate_bias.backward(back, epoch, want_back=False)
        self.gate_rows.backward(back, epoch, want_back=False)

    def factors(self) -> Tensors:
        """What the gradients of the local encoder are made of."""
        users = self.bags.users
        return {
            "own_hidden_wide": inputs_by_user(self.mid, users)[:, :, :-1],
            "own_hidden_narrow": inputs_by_user(self.out, users)[:, :, :-1],
            "own_delta_in": self.bias.deltas,
            "own_delta_mid": self.mid.deltas,
            "own_delta_out": self.out.deltas,
        }

    def write_back(self) -> None:
        """Bring the new values home where they were computed on another device."""
        names = ["rows", "bias", "mid", "out"]
        names += {"linear": ["gate_rows"], "mlp": ["gate_rows", "gate_bias", "gate_out"], "fixed": []}[self.plan.gate]
        for name in names:
            weights, home = getattr(self, name).weights, getattr(self.parts, name)
            if weights.data_ptr() != torch.as_tensor(home).data_ptr():
                home[...] = weights.cpu().numpy().reshape(home.shape)


def inputs_by_user(layers: OwnLayers, users: int) -> torch.Tensor:
    """Inputs of layers that are equally high: ``[users, epochs, in + 1]``."""
    rows = layers.inputs  # [users * (in + 1), epochs]
    return rows.reshape(users, -1, rows.shape[1]).transpose(1, 2)


def read_once(parts: PrivateParts, bags: Bags, plan: LocalPlan, device: str) -> OwnEncoder:
    """Private parts that are read, not trained."""
    return OwnEncoder(parts, bags, LocalPlan(1, 0.0, "frozen", 0.0, plan.gate, plan.weight), device)


def gate_weights(parts: PrivateParts, bags: Bags, plan: LocalPlan, device: str) -> Float32:
    """``[users, 2]`` weights of the global and of the local encoder (Eq. 5)."""
    return np.asarray(read_once(parts, bags, plan, device).weights(0).cpu().numpy(), np.float32)
