"""Local copies of shared layers, without the copies; whole ones where Adam moves them, and to test the factors by.

A user has one training example, so in epoch ``e`` the gradient of a layer ``W`` ``[in, out]`` is the outer
product ``a_e delta_e^T``, and plain gradient descent (Algorithm 1 of FedDAE, ClientUpdate line 4) turns the
downloaded W into

    W_u = W - eta sum_e a_e delta_e^T.

So a user's copy is the shared layer and a change of rank at most E. Reading it and sending a gradient back
through it need W once for all users (one matrix product) and the few factors of each user:

    a W_u = a W - eta sum_e (a . a_e) delta_e,      delta W_u^T = delta W^T - eta sum_e (delta . delta_e) a_e.

The factors are also the accumulated gradient ``sum_e a_e delta_e^T`` that the algorithm uploads.
"""

from __future__ import annotations

import torch

from fedrec.backbones.vae import Bags
from fedrec.methods.vae.own_encoder import OwnLayers, equal_parts, inputs_by_user, with_bias, without_bias
from fedrec.methods.vae.plan import LocalPlan


def _descend(out: torch.Tensor, left: torch.Tensor, right: torch.Tensor, now: torch.Tensor, rate: float) -> None:
    """``out -= rate sum_e (now . left_e) right_e`` per user: ``[u, o], [u, e, i], [u, e, o], [u, i]``."""
    amounts = torch.bmm(left, now[:, :, None])  # [users, e, 1]
    out[:, None].baddbmm_(amounts.transpose(1, 2), right, alpha=-rate)


class SharedLayer:
    """Every user's copy of a shared layer ``[in + 1, out]``; with a rate of 0 the copy stays as it came."""

    def __init__(self, layer: torch.Tensor, users: int, epochs: int, rate: float) -> None:
        self.layer, self.rate = layer, rate
        width_in, width_out = layer.shape
        self.inputs = layer.new_ones((users, epochs, width_in))  # the last column is the bias's input
        self.deltas = layer.new_zeros((users, epochs, width_out))

    def forward(self, values: torch.Tensor, epoch: int) -> torch.Tensor:
        self.inputs[:, epoch, :-1] = values
        return self.read(self.inputs[:, epoch], epoch)

    def read(self, inputs: torch.Tensor, epoch: int) -> torch.Tensor:
        """``[users, in + 1] -> [users, out]`` as after ``epoch`` epochs."""
        out = inputs @ self.layer
        if self.rate and epoch:
            _descend(out, self.inputs[:, :epoch], self.deltas[:, :epoch], inputs, self.rate)
        return out

    def backward(self, delta: torch.Tensor, epoch: int) -> torch.Tensor:
        self.deltas[:, epoch] = delta
        back = delta @ self.layer[:-1].T
        if self.rate and epoch:
            _descend(back, self.deltas[:, :epoch], self.inputs[:, :epoch, :-1], delta, self.rate)
        return back


class SharedItems:
    """Every user's copy of the encoder's first layer: a table ``[m, out]`` and a bias ``[out]``.

    ``values`` ``[interactions, epochs]`` are the inputs, zero for all items but the user's own.
    """

    def __init__(self, table: torch.Tensor, bias: torch.Tensor, bags: Bags, values: torch.Tensor, rate: float) -> None:
        self.table, self.bias, self.bags, self.values, self.rate = table, bias, bags, values, rate
        self.deltas = table.new_zeros((bags.users, values.shape[1], table.shape[1]))

    def forward(self, epoch: int) -> torch.Tensor:
        return self.read(self.values[:, epoch], epoch)

    def read(self, now: torch.Tensor, epoch: int) -> torch.Tensor:
        out = self.bags.read(self.table, now.contiguous()) + self.bias
        if self.rate and epoch:
            amounts = 1.0 + self.bags.add_up(self.values[:, :epoch] * now[:, None])  # [users, e]
            out -= self.rate * torch.bmm(amounts[:, None], self.deltas[:, :epoch])[:, 0]
        return out

    def record(self, delta: torch.Tensor, epoch: int) -> None:
        """Nothing lies before this layer: only its step is noted."""
        self.deltas[:, epoch] = delta


class CopiedLayer:
    """Every user's full copy of a shared layer with its own optimiser: for Adam, and to test the factors."""

    def __init__(self, layer: torch.Tensor, users: int, plan: LocalPlan) -> None:
        self.users = users
        rows = layer.expand(users, *layer.shape).reshape(-1, layer.shape[1]).clone()
        adam = plan.shared == "adam"
        rate = plan.rate if adam else plan.shared_rate
        start = equal_parts(users, len(layer))
        self.own = OwnLayers(start, rows, plan.epochs, rate, adam=adam, accumulate=adam and plan.accumulate)

    def forward(self, values: torch.Tensor, epoch: int) -> torch.Tensor:
        return self.own.forward(with_bias(values), epoch)

    def backward(self, delta: torch.Tensor, epoch: int) -> torch.Tensor:
        return without_bias(self.own.backward(delta, epoch), self.users)

    def moved(self, inputs: torch.Tensor, deltas: torch.Tensor) -> CopiedLayer:
        """The copy after a training of which these are the records ``[users, epochs, width]``: its steps once more."""
        for epoch in range(deltas.shape[1]):
            self.own.inputs[:, epoch] = with_bias(inputs[:, epoch])
            self.own.backward(deltas[:, epoch], epoch, want_back=False)
        return self

    def read(self, inputs: torch.Tensor, epoch: int) -> torch.Tensor:
        """``[users, in + 1] -> [users, out]`` as the copy is now."""
        return self.own.forward(inputs.reshape(-1), 0)

    @property
    def inputs(self) -> torch.Tensor:
        return inputs_by_user(self.own, self.users)

    @property
    def deltas(self) -> torch.Tensor:
        return self.own.deltas


class CopiedItems:
    """Every user's copy of the rows of the first layer that it reads."""

    def __init__(
        self, table: torch.Tensor, bias: torch.Tensor, bags: Bags, values: torch.Tensor, plan: LocalPlan
    ) -> None:
        adam = plan.shared == "adam"
        rate = plan.rate if adam else plan.shared_rate
        self.values = values
        how = {"adam": adam, "accumulate": adam and plan.accumulate}
        self.rows = OwnLayers(bags.start, table[bags.ids].clone(), plan.epochs, rate, **how)
        copies = bias.expand(bags.users, -1).clone()
        self.bias = OwnLayers(equal_parts(bags.users, 1), copies, plan.epochs, rate, **how)

    def forward(self, epoch: int) -> torch.Tensor:
        ones = self.bias.weights.new_ones(len(self.bias.weights))
        return self.rows.forward(self.values[:, epoch], epoch) + self.bias.forward(ones, epoch)

    def record(self, delta: torch.Tensor, epoch: int) -> None:
        self.rows.backward(delta, epoch, want_back=False)
        self.bias.backward(delta, epoch, want_back=False)

    def moved(self, deltas: torch.Tensor) -> CopiedItems:
        """The copy after a training of which these are the records ``[users, epochs, out]``: its steps once more."""
        for epoch in range(deltas.shape[1]):
            self.rows.inputs[:, epoch], self.bias.inputs[:, epoch] = self.values[:, epoch], 1
            self.record(deltas[:, epoch], epoch)
        return self

    def read(self, now: torch.Tensor, epoch: int) -> torch.Tensor:
        """As the copy is now; ``now`` ``[interactions]``."""
        return self.rows.forward(now, 0) + self.bias.forward(self.bias.weights.new_ones(len(self.bias.weights)), 0)

    @property
    def deltas(self) -> torch.Tensor:
        return self.rows.deltas
