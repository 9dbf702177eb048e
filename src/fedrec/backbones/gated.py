"""FedIAR's client model: a gate weighs the local and the global view of an item, then a score function.

    Phi    = H(u; Psi)                                                                            (Eq. 21)
    lambda = G([z_local | z_global]; Phi)                                                         (Eq. 19)
    z      = lambda z_local + (1 - lambda) z_global                                               (Eq. 18)
    r      = sigmoid(S(u, z; Theta))                                                              (Eq. 20)

To the training engines this is one backbone of twice the dimension: a user's row is ``[u | theta]``, theta being
the weights of the affine score function, and an item's row is ``[z_local | z_global]``.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, ClassVar, Literal, Protocol

import numpy as np

from fedrec import keyed
from fedrec.backbones.base import Backbone
from fedrec.core.messages import Array, Float32
from fedrec.data.ragged import Int32, Int64
from fedrec.keyed import U64

if TYPE_CHECKING:
    from torch import Tensor

GateKind = Literal["network", "equal", "sum", "global"]


class Views(Protocol):
    """Both views of every item, client by client."""

    @property
    def shape(self) -> tuple[int, int, int]: ...

    def views(self, client: int) -> tuple[Float32 | None, Float32, Int32, Float32]:
        """The local view (None: the same as the global one), the global one, and what of it is changed for this
        client: rows and what is added to them."""
        ...


class GatedViews(Backbone):
    """Gate, hypernetwork and score function; parameters ``[clients, ...]``, the bias ``[users]``.

    ``gate``: the network, a constant one half, the plain sum (FedIAR without ALGF), or the global view alone (warm-up).
    ``local_rate``: the local view's gradient is multiplied by it, so that under plain descent it learns at that rate.
    ``scorer``: ``affine`` (``theta . z + b``) or ``mlp`` (``[u | z]`` through one hidden layer, plus the affine).
    """

    name: ClassVar[str] = "gated"
    per_user: ClassVar[frozenset[str]] = frozenset({"bias"})

    def __init__(
        self,
        hidden: int = 8,
        hyper_hidden: int = 16,
        gate: GateKind = "network",
        scorer: Literal["affine", "mlp"] = "affine",
        local_rate: float = 1.0,
    ) -> None:
        self.local_rate = local_rate
        self.hidden, self.hyper_hidden, self.gate, self.scorer = hidden, hyper_hidden, gate, scorer

    def gate_size(self, dim: int) -> int:
        """Numbers in Phi: a hidden layer over ``2 d`` inputs and one output."""
        return self.hidden * (2 * dim + 2) + 1

    def shapes(self, dim: int) -> dict[str, tuple[int, ...]]:
        """Layers by name; ``dim`` is d, half the width of a row."""
        found: dict[str, tuple[int, ...]] = {
            "hyper_weight_0": (dim, self.hyper_hidden),
            "hyper_bias_0": (self.hyper_hidden,),
            "hyper_weight_1": (self.hyper_hidden, self.gate_size(dim)),
            "hyper_bias_1": (self.gate_size(dim),),
        }
        if self.scorer == "mlp":
            found |= {"score_weight_0": (2 * dim, dim), "score_bias_0": (dim,), "score_weight_1": (dim, 1)}
        return found

    def start(self, keys: U64, dim: int) -> dict[str, Array]:
        """Uniform in ``+-1 / sqrt(inputs)``, as torch's linear layers start; ``dim`` is the width ``2 d``."""
        found: dict[str, Array] = {"bias": np.zeros(len(keys), np.float32)}
        inputs = 1
        for name, shape in self.shapes(dim // 2).items():
            inputs = shape[0] if len(shape) == 2 else inputs
            streams = keyed.streams(keyed.stream(0, "gated", name), keys)
            drawn = (keyed.uniform(streams, int(np.prod(shape))) * 2 - 1) / np.sqrt(inputs)
            found[name] = drawn.reshape(len(keys), *shape).astype(np.float32)
        return found

    def weights(self, person: Tensor, items: Tensor, networks: Mapping[str, Tensor]) -> Tensor:
        """lambda ``[clients, batch, 1]`` (Eq. 19, 21) of users u ``[clients, batch or 1, d]``."""
        import torch

        inner = torch.relu(person @ networks["hyper_weight_0"] + networks["hyper_bias_0"].unsqueeze(-2))
        made = inner @ networks["hyper_weight_1"] + networks["hyper_bias_1"].unsqueeze(-2)  # Phi
        wide, h = items.shape[-1], self.hidden
        first, first_bias, second, second_bias = torch.split(made, [wide * h, h, h, 1], dim=-1)
        if made.shape[-2] == 1:
            layer = first.reshape(*made.shape[:-2], wide, h)
            state = torch.relu(items @ layer + first_bias)
            return torch.sigmoid(state @ second.transpose(-1, -2) + second_bias)
        layer = first.reshape(*made.shape[:-1], wide, h)
        state = torch.relu((items.unsqueeze(-2) @ layer).squeeze(-2) + first_bias)
        return torch.sigmoid((state * second).sum(-1, keepdim=True) + second_bias)

    def fused(self, person: Tensor, items: Tensor, networks: Mapping[str, Tensor]) -> Tensor:
        """The fused item vectors ``[clients, batch, d]`` (Eq. 18)."""
        import torch

        dim = items.shape[-1] // 2
        local, common = items[..., :dim], items[..., dim:]
        if self.local_rate != 1 and local.requires_grad:
            local = local.detach().lerp(local, self.local_rate)
            items = torch.cat([local, common], -1)
        if self.gate == "global":
            return common
        if self.gate in ("equal", "sum"):
            return (0.5 if self.gate == "equal" else 1.0) * (local + common)
        share = self.weights(person, items, networks)
        return common + share * (local - common)

    def score(self, users: Tensor, items: Tensor, networks: Mapping[str, Tensor]) -> Tensor:
        import torch

        dim = items.shape[-1] // 2
        person, theta = users[..., :dim], users[..., dim:]
        vectors = self.fused(person, items, networks)
        found = (theta * vectors).sum(-1) + networks["bias"]
        if self.scorer == "mlp":
            first = networks["score_weight_0"]
            inner = (
                person @ first[..., :dim, :] + vectors @ first[..., dim:, :] + networks["score_bias_0"].unsqueeze(-2)
            )
            found = found + (torch.relu(inner) @ networks["score_weight_1"]).squeeze(-1)
        return found

    def _scores(self, users: Float32, table: Any, networks: Mapping[str, Array], owners: Int64) -> Float32:
        """``table`` has :class:`Views`. Gate and score function are linear in each view up to their activations, so
        that fused vectors are never written out."""
        tables: Views = table
        dim, result = users.shape[1] // 2, np.empty((len(users), tables.shape[-2]), np.float32)
        for user, client in enumerate(owners):
            own = {name: np.asarray(values[client]) for name, values in networks.items() if name != "bias"}
            person, score = users[user, :dim], users[user, dim:, None]
            if self.scorer == "mlp":
                score = np.concatenate([score, own["score_weight_0"][dim:]], 1)
            into, bias, out, out_bias = self._gate(person, own)
            width = into.shape[1]
            local, common, rows, values = tables.views(int(client))
            left, right = (np.concatenate([part, score], 1) for part in (into[:dim], into[dim:]))
            seen = common @ right
            seen[rows] += values @ right
            if self.gate == "global":
                found = seen[:, width:]
            else:
                kept = (common if local is None else local) @ left
                if local is None:
                    kept[rows] += values @ left
                if self.gate == "network":
                    state = kept[:, :width] + seen[:, :width] + bias
                    share = 0.5 + 0.5 * np.tanh(0.5 * (np.maximum(state, 0, out=state) @ out + out_bias))  # sigmoid
                    found = seen[:, width:] + share[:, None] * (kept[:, width:] - seen[:, width:])
                else:
                    found = (0.5 if self.gate == "equal" else 1.0) * (kept[:, width:] + seen[:, width:])
            result[user] = found[:, 0] + networks["bias"][user]
            if self.scorer == "mlp":
                inner = person @ own["score_weight_0"][:dim] + own["score_bias_0"] + found[:, 1:]
                result[user] += (np.maximum(inner, 0) @ own["score_weight_1"])[:, 0]
        return result

    def _gate(self, person: Float32, own: Mapping[str, Array]) -> tuple[Float32, Float32, Float32, Float32]:
        """One user's gate Phi (Eq. 21): its first layer ``[2 d, hidden]`` and the rest; empty where there is none."""
        wide, h = 2 * len(person), self.hidden
        if self.gate != "network":
            none = np.empty(0, np.float32)
            return np.empty((wide, 0), np.float32), none, none, none
        inner = np.maximum(person @ own["hyper_weight_0"] + own["hyper_bias_0"], 0)
        made = inner @ own["hyper_weight_1"] + own["hyper_bias_1"]
        first, bias, out, out_bias = np.split(made, np.cumsum([wide * h, h, h]))
        return first.reshape(wide, h), bias, out, out_bias
