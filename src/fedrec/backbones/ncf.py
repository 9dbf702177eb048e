"""Neural collaborative filtering: a multi-layer perceptron on ``[u; v]`` (FedCA section 6.1: 32-16-8)."""

from __future__ import annotations

import itertools
from collections.abc import Mapping
from typing import TYPE_CHECKING, ClassVar

import numpy as np

from fedrec import keyed
from fedrec.backbones.base import Backbone
from fedrec.core.messages import Array, Float32
from fedrec.data.ragged import Int64
from fedrec.keyed import U64

if TYPE_CHECKING:
    from torch import Tensor


class NeuralCollaborativeFiltering(Backbone):
    """``score = w . relu(W_L ... relu(W_1 [u; v] + b_1) ...) + b``.

    Networks: ``weight_0`` ``[out, 2 d]``, ``bias_0`` ``[out]``, and so on; the last layer has one output.
    """

    name: ClassVar[str] = "ncf"

    def __init__(self, hidden: tuple[int, ...] = (32, 16, 8)) -> None:
        self.hidden = hidden

    def sizes(self, dim: int) -> list[tuple[int, int]]:
        """Inputs and outputs of each layer."""
        widths = [2 * dim, *self.hidden, 1]
        return list(itertools.pairwise(widths))

    def start(self, keys: U64, dim: int) -> dict[str, Array]:
        """Uniform in ``+-1 / sqrt(inputs)``, as torch's linear layers start."""
        found: dict[str, Array] = {}
        for layer, (inputs, outputs) in enumerate(self.sizes(dim)):
            bound = 1.0 / np.sqrt(inputs)
            streams = keyed.streams(keyed.stream(0, "ncf", layer), keys)
            drawn = (keyed.uniform(streams, outputs * (inputs + 1)) * 2 - 1) * bound
            cut = outputs * inputs
            found[f"weight_{layer}"] = drawn[:, :cut].reshape(-1, outputs, inputs).astype(np.float32)
            found[f"bias_{layer}"] = drawn[:, cut:].astype(np.float32)
        return found

    def score(self, users: Tensor, items: Tensor, networks: Mapping[str, Tensor]) -> Tensor:
        dim = users.shape[-1]
        first = networks["weight_0"].mT  # [clients, 2 d, out]
        # the user's half of the first layer is worked out once per user, not once per sample
        state = items @ first[:, dim:] + (users @ first[:, :dim] + networks["bias_0"].unsqueeze(1))
        for layer in range(1, len(self.hidden) + 1):
            state = state.relu() @ networks[f"weight_{layer}"].mT + networks[f"bias_{layer}"].unsqueeze(1)
        return state.squeeze(-1)

    def _scores(self, users: Float32, table: Float32, networks: Mapping[str, Array], owners: Int64) -> Float32:
        dim = users.shape[1]
        shared = networks["weight_0"].ndim == 2
        result = np.empty((len(users), table.shape[-2]), np.float32)
        known: tuple[int, Array] | None = None  # the items' half of the first layer, for as long as it holds
        for user, client in enumerate(owners):
            own = {name: array if shared else array[client] for name, array in networks.items()}
            stamp = 0 if shared and table.ndim == 2 else int(client)
            if known is None or known[0] != stamp:
                items = table if table.ndim == 2 else table[client]
                known = (stamp, items @ own["weight_0"][:, dim:].T)
            state = known[1] + (own["weight_0"][:, :dim] @ users[user] + own["bias_0"])
            for layer in range(1, len(self.hidden) + 1):
                state = np.maximum(state, 0) @ own[f"weight_{layer}"].T + own[f"bias_{layer}"]
            result[user] = state[:, 0]
        return result
