"""NeuMF: matrix factorisation and a multi-layer perceptron side by side.

He et al., "Neural collaborative filtering", WWW 2017. The first half of each embedding belongs to the
factorisation, the second to the perceptron.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, ClassVar

import numpy as np

from fedrec.backbones.base import Backbone
from fedrec.backbones.ncf import NeuralCollaborativeFiltering
from fedrec.core.messages import Array, Float32
from fedrec.data.ragged import Int64
from fedrec.keyed import U64

if TYPE_CHECKING:
    from torch import Tensor


class NeuMf(Backbone):
    """``score = h . (u_1 * v_1) + MLP([u_2; v_2])``; networks ``h`` ``[d / 2]`` and the perceptron's."""

    name: ClassVar[str] = "neumf"

    def __init__(self, hidden: tuple[int, ...] = (32, 16, 8)) -> None:
        self.perceptron = NeuralCollaborativeFiltering(hidden)

    def start(self, keys: U64, dim: int) -> dict[str, Array]:
        half = dim // 2
        return {"h": np.ones((len(keys), half), np.float32), **self.perceptron.start(keys, dim - half)}

    def score(self, users: Tensor, items: Tensor, networks: Mapping[str, Tensor]) -> Tensor:
        half = networks["h"].shape[-1]
        product = (users[..., :half] * items[..., :half] * networks["h"].unsqueeze(1)).sum(-1)
        layers = {name: layer for name, layer in networks.items() if name != "h"}
        return product + self.perceptron.score(users[..., half:], items[..., half:], layers)

    def _scores(self, users: Float32, table: Float32, networks: Mapping[str, Array], owners: Int64) -> Float32:
        if table.ndim != 2 or networks["h"].ndim != 1:
            raise ValueError("neumf is a centralised model: one table and one network")
        half = networks["h"].shape[0]
        layers = {name: layer for name, layer in networks.items() if name != "h"}
        found = self.perceptron.scores(users[:, half:], table[:, half:], layers, owners)
        return found + (users[:, :half] * networks["h"]) @ table[:, :half].T
