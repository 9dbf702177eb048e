"""SASRec: the next item from the order of the last ones, by causal self-attention.

Kang and McAuley, "Self-attentive sequential recommendation", ICDM 2018; backbone of FedCA's Table 4. The user's
vector is what attention makes of the last items, so it is never a parameter; scores are dot products with the
item table. Networks of many clients are stacked on a leading axis and go through the same few products.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, ClassVar

import numpy as np

from fedrec import keyed
from fedrec.backbones.base import Backbone
from fedrec.core.messages import Array
from fedrec.keyed import U64

if TYPE_CHECKING:
    from torch import Tensor


class SasRec(Backbone):
    """``x = E + P``; each block ``x = LN(x) + attention``, ``x = LN(x) + W_2 relu(W_1 LN(x))``; a last LN; one head.

    Networks: ``position`` ``[length, d]``; for each block ``b`` the matrices ``query_b key_b value_b in_b out_b``
    ``[d, d]`` (input first) and biases and norms ``[d]``; ``scale`` and ``shift`` of the last norm.
    """

    name: ClassVar[str] = "sasrec"
    sequential: ClassVar[bool] = True

    def __init__(self, length: int = 50, blocks: int = 1) -> None:
        self.length, self.blocks = length, blocks

    def start(self, keys: U64, dim: int) -> dict[str, Array]:
        """Glorot-uniform matrices, small positions, norms that change nothing."""
        count, bound = len(keys), np.sqrt(3.0 / dim)

        def drawn(purpose: str, rows: int, scale: float) -> Array:
            streams = keyed.streams(keyed.stream(0, "sasrec", purpose), keys)
            values = (keyed.uniform(streams, rows * dim) * 2 - 1) * scale
            return values.reshape(count, rows, dim).astype(np.float32)

        found: dict[str, Array] = {"position": drawn("position", self.length, 0.05)}
        for block in range(self.blocks):
            for name in ("query", "key", "value", "in", "out"):
                found[f"{name}_{block}"] = drawn(f"{name} {block}", dim, bound)
            for name in ("in_bias", "out_bias", "scale_a", "shift_a", "scale_b", "shift_b"):
                found[f"{name}_{block}"] = np.full((count, dim), int(name.startswith("scale")), np.float32)
        found["scale"] = np.ones((count, dim), np.float32)
        found["shift"] = np.zeros((count, dim), np.float32)
        return found

    def represent(self, items: Tensor, real: Tensor, networks: Mapping[str, Tensor]) -> Tensor:
        """States ``[clients, sequences, length, d]`` after each position.

        ``items`` ``[clients, sequences, length, d]`` embeddings, the latest last, padding first; ``real`` the
        same without d: which positions hold an item; networks ``[clients, ...]``.
        """
        import torch

        length, dim = items.shape[2:]
        ahead = torch.ones(length, length, dtype=torch.bool, device=items.device).triu(1)
        hidden = ahead | ~real.unsqueeze(2)  # [clients, sequences, length, length] what a position must not see
        # padding sees itself: no empty rows
        hidden = hidden & ~torch.eye(length, dtype=torch.bool, device=items.device)
        states = items * dim**0.5 + networks["position"][:, None, -length:]
        for block in range(self.blocks):
            own = {name.rsplit("_", 1)[0]: p for name, p in networks.items() if name.endswith(f"_{block}")}
            queries = _norm(states, own["scale_a"], own["shift_a"])
            logits = (queries @ own["query"][:, None]) @ (states @ own["key"][:, None]).mT / dim**0.5
            attention = logits.masked_fill(hidden, -torch.inf).softmax(-1)
            states = queries + attention @ (states @ own["value"][:, None])
            inner = _norm(states, own["scale_b"], own["shift_b"])
            wide = (inner @ own["in"][:, None] + own["in_bias"][:, None, None]).relu()
            states = inner + wide @ own["out"][:, None] + own["out_bias"][:, None, None]
        return _norm(states, networks["scale"], networks["shift"])


def _norm(states: Tensor, scale: Tensor, shift: Tensor) -> Tensor:
    """Layer norm with a scale and shift for each client ``[clients, d]``."""
    from torch.nn.functional import layer_norm

    return layer_norm(states, states.shape[-1:]) * scale[:, None, None] + shift[:, None, None]
