"""The multi-layer perceptron of FedCIA's comparison: layers on ``[u; v]``, as wide as the embedding and halving."""

from __future__ import annotations

from typing import ClassVar

from fedrec.backbones.ncf import NeuralCollaborativeFiltering


class Perceptron(NeuralCollaborativeFiltering):
    """``[u; v] -> d -> d / 2 -> 1``: for d = 32 the network that GPFedRec and FedCIA compare with."""

    name: ClassVar[str] = "mlp"

    def __init__(self, dim: int) -> None:
        super().__init__((dim, max(1, dim // 2)))
