"""The transfer-matrix generator F of Fed3CR (Eq. 9): a fully connected network from two prototypes to W.

Layers have inputs ``2d, 4d, 8d, ...`` (section V-A4), the last one gives the ``d x d`` numbers of W. Parameters
``transfer_weight_l`` ``[in, out]`` and ``transfer_bias_l`` ``[out]``, stacked over clients where clients
have their own.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

import numpy as np

from fedrec import keyed
from fedrec.core.messages import Float32

if TYPE_CHECKING:
    from torch import Tensor

MATRIX = "transfer_matrix"
"""Name of W where it is a parameter of its own (Table IV)."""


def generator_sizes(dim: int, layers: int) -> list[tuple[int, int]]:
    """Inputs and outputs of each layer: ``[2d, 4d, ...]`` in, ``d * d`` out of the last."""
    inputs = [dim * 2 ** (1 + layer) for layer in range(layers)]
    return list(zip(inputs, [*inputs[1:], dim * dim], strict=True))


def start_generator(key: int, dim: int, layers: int) -> dict[str, Float32]:
    """Fresh layers, uniform in ``+-1 / sqrt(inputs)`` as torch's start; the last bias holds the identity, so
    that an untrained generator passes the consensus on nearly as it is."""
    found: dict[str, Float32] = {}
    for layer, (inputs, outputs) in enumerate(generator_sizes(dim, layers)):
        streams = keyed.streams(keyed.stream(key, layer), np.arange(inputs + 1, dtype=np.uint64))
        drawn = ((keyed.uniform(streams, outputs) * 2 - 1) / np.sqrt(inputs)).astype(np.float32)
        found[f"transfer_weight_{layer}"], found[f"transfer_bias_{layer}"] = drawn[:-1], drawn[-1]
    found[f"transfer_bias_{layers - 1}"] = np.eye(dim, dtype=np.float32).reshape(-1)
    return found


def layer_count(networks: Mapping[str, object]) -> int:
    """How many layers the generator among these networks has."""
    return sum(name.startswith("transfer_weight_") for name in networks)


def generate(inputs: Tensor, networks: Mapping[str, Tensor]) -> tuple[Tensor, list[Tensor]]:
    """W ``[clients, d, d]`` from ``[p^G, p^P]`` ``[clients, 1, 2d]`` (Eq. 9), and what each layer read."""
    read, state = [], inputs
    layers = layer_count(networks)
    for layer in range(layers):
        read.append(state)
        weight, bias = networks[f"transfer_weight_{layer}"], networks[f"transfer_bias_{layer}"]
        state = state @ weight + bias.unsqueeze(-2)
        if layer < layers - 1:
            state = state.relu()
    dim = inputs.shape[-1] // 2
    return state.view(-1, dim, dim), read
