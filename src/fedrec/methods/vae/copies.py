"""Full copies of shared layers for every user: where Adam moves them, and to test the factors against."""

from __future__ import annotations

import torch

from fedrec.backbones.vae import Bags
from fedrec.methods.vae.own_encoder import inputs_by_user
from fedrec.methods.vae.own_layers import OwnLayers, equal_parts, with_bias, without_bias
from fedrec.methods.vae.plan import LocalPlan


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

    @property
    def deltas(self) -> torch.Tensor:
        return self.rows.deltas
