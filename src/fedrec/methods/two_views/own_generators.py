"""The generators of a chunk's clients (Fed3CR, Eq. 9), kept as what all downloaded and what each client's steps added.

A step adds one outer product to each layer, of what the layer read and what descends there, and a client makes few
steps. So its layers, which are larger than its item tables, need not exist: products with the downloaded ones are
made for all clients at once, those with the steps cost next to nothing, and a change is written once, at the end.
"""

from __future__ import annotations

from collections.abc import Mapping

import torch
from torch import Tensor

from fedrec.core.messages import Array
from fedrec.data.ragged import Int64
from fedrec.methods.two_views.generator import layer_count

STEPS = 32
"""Steps that are kept apart; then they are added up, and from there on each client's layers do exist."""


class OwnGenerators:
    """Layers ``x W + b`` of clients; what is asked of the first ``active`` of them has that many rows."""

    def __init__(self, networks: Mapping[str, Array], clients: int) -> None:
        layers = range(layer_count(networks))
        self.start = [torch.from_numpy(networks[f"transfer_weight_{layer}"]) for layer in layers]
        self.start_bias = [torch.from_numpy(networks[f"transfer_bias_{layer}"]) for layer in layers]
        self.weight = list(self.start)  # [in, out], or [clients, in, out] with what was added up
        self.bias = [bias.expand(clients, -1) for bias in self.start_bias]
        self.read = [torch.zeros(clients, STEPS, weight.shape[0]) for weight in self.start]
        self.moved = [torch.zeros(clients, STEPS, weight.shape[1]) for weight in self.start]
        self.count = 0

    def matrix(self, inputs: Tensor) -> tuple[Tensor, list[Tensor]]:
        """W ``[active, d, d]`` from both prototypes ``[active, 2d]``, and what each layer read."""
        state, found = inputs, []
        for layer in range(len(self.start)):
            found.append(state)
            active = len(state)
            along = _of_each(self._steps(self.read[layer], active), state) + 1  # the bias moves as if it read 1
            state = _times(state, self.weight[layer]) + self.bias[layer][:active]
            state += _sum_of_each(along, self._steps(self.moved[layer], active))
            if layer < len(self.start) - 1:
                state = state.relu()
        dim = inputs.shape[1] // 2
        return state.view(-1, dim, dim), found

    def descend(self, gradient: Tensor, read: list[Tensor], rate: float) -> Tensor:
        """A step along the gradient of W; returns the gradient of the prototypes ``[active, 2d]``."""
        if self.count == STEPS:
            self._add_up()
        delta = gradient.flatten(1)
        active = len(delta)
        for layer in range(len(self.start) - 1, -1, -1):
            along = _of_each(self._steps(self.moved[layer], active), delta)
            back = _times(delta, self.weight[layer].mT) + _sum_of_each(along, self._steps(self.read[layer], active))
            self.read[layer][:active, self.count] = read[layer]
            self.moved[layer][:active, self.count] = delta * -rate
            delta = back * (read[layer] > 0) if layer else back
        self.count += 1
        return delta

    def put_changes(self, into: Mapping[str, Array], clients: Int64) -> None:
        """What each client's layers changed by, written to where the clients stand."""
        for layer, (start, start_bias) in enumerate(zip(self.start, self.start_bias, strict=True)):
            weights, biases = into[f"transfer_weight_{layer}"], into[f"transfer_bias_{layer}"]
            for position, client in enumerate(clients):
                read, moved = self.read[layer][position, : self.count], self.moved[layer][position, : self.count]
                target = torch.from_numpy(weights[client])
                torch.mm(read.T, moved, out=target)
                if self.weight[layer].ndim == 3:
                    target += self.weight[layer][position] - start
                biases[client] = (moved.sum(0) + (self.bias[layer][position] - start_bias)).numpy()

    def _steps(self, kept: Tensor, active: int) -> Tensor:
        return kept[:active, : self.count]

    def _add_up(self) -> None:
        for layer, (read, moved) in enumerate(zip(self.read, self.moved, strict=True)):
            self.weight[layer] = torch.baddbmm(self.weight[layer], read.mT, moved)
            self.bias[layer] = self.bias[layer] + moved.sum(1)
            read.zero_()
            moved.zero_()
        self.count = 0


def _times(state: Tensor, weight: Tensor) -> Tensor:
    """Rows ``[active, in]`` times one matrix for all, or each row's own."""
    return state @ weight if weight.ndim == 2 else (state[:, None] @ weight[: len(state)])[:, 0]


def _of_each(steps: Tensor, state: Tensor) -> Tensor:
    """Dot products of ``[active, steps, n]`` and ``[active, n]``."""
    return (steps @ state[:, :, None])[:, :, 0]


def _sum_of_each(along: Tensor, steps: Tensor) -> Tensor:
    """Sums over steps of ``[active, steps]`` times ``[active, steps, n]``."""
    return (along[:, None] @ steps)[:, 0]
