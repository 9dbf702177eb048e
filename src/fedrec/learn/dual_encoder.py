"""ClientUpdate of FedDAE's Algorithm 1 for many users at once: forward, backward and steps, written out.

One chunk of users goes through all E epochs together. Shared layers are read by one matrix product for the
whole chunk (:mod:`fedrec.learn.shared_layers`); private layers are each user's own
(:mod:`fedrec.learn.own_layers`) and change in place. Needs numpy and torch only, on any device.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Literal

import numpy as np
import torch
from numpy.typing import NDArray

from fedrec.backbones.vae import Bags, combined, divergence
from fedrec.learn.own_layers import OwnLayers, equal_parts, with_bias, without_bias
from fedrec.learn.shared_layers import SharedItems, SharedLayer

Tensors = dict[str, torch.Tensor]
Float32 = NDArray[np.float32]

ACTIVATIONS = ("hidden_wide", "hidden_narrow", "latent", "decoded_narrow", "decoded_wide")
"""Inputs of the five layers behind the first, ``[users, epochs, width]`` each."""
DELTAS = ("delta_in", "delta_mid", "delta_out", "delta_decoder_in", "delta_decoder_mid", "delta_decoder_out")
"""Gradients of the outputs of all six layers, ``[users, epochs, width]`` each."""


@dataclass(frozen=True)
class LocalPlan:
    """How a client trains."""

    epochs: int
    """E."""
    rate: float
    """eta."""
    shared: Literal["frozen", "descent", "adam"]
    """What happens to a client's copies of the shared layers during its local epochs."""
    beta: float
    """Weight of the prior matching in this round (Eq. 6)."""
    gate: Literal["linear", "mlp", "fixed"]
    weight: float
    """Weight of the global encoder where the gate is fixed."""
    shared_rate: float = 0.0
    """Rate of plain descent of the copies: eta alpha_u, since line 3 differentiates Eq. (7)."""
    accumulate: bool = False
    """Whether Adam sees the sum of all epochs' gradients so far instead of the epoch's own."""


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


@dataclass(frozen=True)
class Factors:
    """What is left of a chunk's local work beside private parts: all that the gradients are made of."""

    arrays: Tensors  # ACTIVATIONS and DELTAS, and those of the own encoder; [users, epochs, width]
    loss: torch.Tensor  # [users] mean over the epochs

    def at_home(self, names: Iterable[str] = (*ACTIVATIONS, *DELTAS)) -> dict[str, Float32]:
        """Factors as numpy arrays."""
        return {name: self.arrays[name].cpu().numpy() for name in names}


class _Own:
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


class _CopiedLayer:
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


class _CopiedItems:
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


def train_chunk(
    shared: Tensors,
    parts: PrivateParts | None,
    bags: Bags,
    values: torch.Tensor,
    noise: torch.Tensor,
    plan: LocalPlan,
    *,
    copies: bool | None = None,
) -> Factors:
    """E epochs of all users of a chunk; ``parts`` (None without a local encoder) change in place.

    ``values`` ``[interactions, epochs]`` are normalised inputs after dropout, ``noise`` ``[users, epochs, d]``
    the epsilon of the reparametrisation. ``copies`` asks for full copies of shared layers where factors do.
    """
    users, device = bags.users, str(values.device)
    own = None if parts is None else _Own(parts, bags, plan, device)
    rate = plan.shared_rate if plan.shared == "descent" else 0.0
    if plan.shared == "adam" if copies is None else copies:
        items: SharedItems | _CopiedItems
        items = _CopiedItems(shared["items_in"], shared["bias_in"], bags, values, plan)
        deep = [_CopiedLayer(shared[name], users, plan) for name in _DEEP]
    else:
        items = SharedItems(shared["items_in"], shared["bias_in"], bags, values, rate)
        deep = [SharedLayer(shared[name], users, plan.epochs, rate) for name in _DEEP]  # type: ignore[misc]
    mid, out, decoder_in, decoder_mid, decoder_out = deep
    d = noise.shape[2]
    loss = values.new_zeros(users)
    for epoch in range(plan.epochs):
        now = values[:, epoch]
        wide = items.forward(epoch).tanh()
        narrow = mid.forward(wide, epoch).tanh()
        coded = out.forward(narrow, epoch)  # [users, 2 x d]
        if own is None:
            local, weights = coded, None
            mean, variance = coded[:, :d], coded[:, d:].exp()
        else:
            local, weights = own.encode(now, epoch), own.weights(epoch)
            mean, variance = combined(coded, local, weights)  # Eq. (5)
        deviation = variance.sqrt()
        latent = mean + deviation * noise[:, epoch]  # reparametrisation

        decoded_narrow = decoder_in.forward(latent, epoch).tanh()
        decoded_wide = decoder_mid.forward(decoded_narrow, epoch).tanh()
        logits = decoder_out.forward(decoded_wide, epoch)  # [users, m]
        chances = logits.log_softmax(1)
        likelihood = bags.add_up(chances[bags.owners, bags.ids])  # Eq. (3)
        loss += (plan.beta * divergence(mean, variance) - likelihood) / plan.epochs  # Eq. (6), negated

        # gradient of the loss with respect to the logits: m_u pi - r_u
        back = chances.exp_().mul_(bags.counts[:, None])
        back[bags.owners, bags.ids] -= 1.0
        back = decoder_out.backward(back, epoch) * (1 - decoded_wide**2)
        back = decoder_mid.backward(back, epoch) * (1 - decoded_narrow**2)
        back = decoder_in.backward(back, epoch)  # [users, d]
        to_mean = back + plan.beta * mean
        to_variance = 0.5 * (back * noise[:, epoch] / deviation + plan.beta * (1 - 1 / variance))

        if own is not None and weights is not None:
            w_1, w_2 = weights[:, :1], weights[:, 1:]
            spread, own_spread = coded[:, d:].exp(), local[:, d:].exp()
            to_weights = torch.stack(
                [
                    (to_mean * coded[:, :d]).sum(1) + 2 * weights[:, 0] * (to_variance * spread).sum(1),
                    (to_mean * local[:, :d]).sum(1) + 2 * weights[:, 1] * (to_variance * own_spread).sum(1),
                ],
                dim=1,
            )
            own.weights_back(weights, to_weights, epoch)
            own.encode_back(torch.cat([w_2 * to_mean, w_2**2 * own_spread * to_variance], dim=1), epoch)
            to_coded = torch.cat([w_1 * to_mean, w_1**2 * spread * to_variance], dim=1)
        else:
            to_coded = torch.cat([to_mean, variance * to_variance], dim=1)
        back = out.backward(to_coded, epoch) * (1 - narrow**2)
        back = mid.backward(back, epoch) * (1 - wide**2)
        items.record(back, epoch)
    arrays = {name: layer.inputs[:, :, :-1] for name, layer in zip(ACTIVATIONS, deep, strict=True)}
    arrays |= {name: layer.deltas for name, layer in zip(DELTAS, [items, *deep], strict=True)}
    if own is not None:
        own.write_back()
        arrays |= own.factors()
    return Factors(arrays, loss.double())


_DEEP = ("encoder_mid", "encoder_out", "decoder_in", "decoder_mid", "decoder_out")


def _read_once(parts: PrivateParts, bags: Bags, plan: LocalPlan, device: str) -> _Own:
    """Private parts that are read, not trained."""
    return _Own(parts, bags, LocalPlan(1, 0.0, "frozen", 0.0, plan.gate, plan.weight), device)


def gate_weights(parts: PrivateParts, bags: Bags, plan: LocalPlan, device: str) -> Float32:
    """``[users, 2]`` weights of the global and of the local encoder (Eq. 5)."""
    return np.asarray(_read_once(parts, bags, plan, device).weights(0).cpu().numpy(), np.float32)


def code_chunk(
    shared: Tensors,
    parts: PrivateParts | None,
    bags: Bags,
    values: torch.Tensor,
    plan: LocalPlan,
    trained: dict[str, torch.Tensor] | None = None,
) -> torch.Tensor:
    """Logits ``[users, m]`` at the mean of the latent variable, without dropout or noise.

    ``values`` ``[interactions]`` are normalised inputs. ``trained`` (ACTIVATIONS, DELTAS, ``values`` of each
    epoch) gives the users their own copies of the shared layers, as right after local descent.
    """
    users, device = bags.users, str(values.device)
    rate = 0.0 if trained is None else plan.shared_rate
    epochs = 0 if trained is None else int(trained["values"].shape[1])
    history = values.new_zeros((len(values), 0)) if trained is None else trained["values"]
    items = SharedItems(shared["items_in"], shared["bias_in"], bags, history, rate)
    deep = {name: SharedLayer(shared[name], users, epochs, rate) for name in _DEEP}
    if trained is not None:
        items.deltas = trained[DELTAS[0]]
        for layer, activation, delta in zip(deep.values(), ACTIVATIONS, DELTAS[1:], strict=True):
            layer.inputs[:, :, :-1] = trained[activation]
            layer.deltas = trained[delta]

    def through(name: str, inputs: torch.Tensor) -> torch.Tensor:
        return deep[name].read(with_bias(inputs).reshape(users, -1), epochs)

    wide = items.read(values, epochs).tanh()
    coded = through("encoder_out", through("encoder_mid", wide).tanh())
    d = coded.shape[1] // 2
    latent = coded[:, :d]
    if parts is not None:
        own = _read_once(parts, bags, plan, device)
        local, weights = own.encode(values, 0), own.weights(0)
        latent, _ = combined(coded, local, weights)
    return through("decoder_out", through("decoder_mid", through("decoder_in", latent).tanh()).tanh())
